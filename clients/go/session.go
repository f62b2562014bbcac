package emend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

const (
	// longestDrain is the longest that a server can make a node wait.
	longestDrain = 5 * time.Minute
	// firstMessage is how long a stream may wait for its turn to get a snapshot.
	firstMessage = time.Minute
	// reportInterval is the least time between reports; problems are reported at once.
	reportInterval = 10 * time.Second
	// reportDeadline is how long a report may take.
	reportDeadline = 5 * time.Second
)

var errSilent = errors.New("the server said nothing")

// A session is what the stream's goroutine alone knows.
type session struct {
	*Node
	waits      waits
	mismatches int
	violations int
	// turn says which address comes first.
	turn       int
	delays     delays
	reportedAt time.Time
	rejected   int
	reports    chan reportDone
	reporting  bool
	savedAt    time.Time
	savedAs    int64
	saving     chan error
	savingAs   int64
	dirty      bool
}

type reportDone struct {
	delays delays
	err    error
}

// run follows one stream after the other until the node is closed.
func (n *Node) run(ctx context.Context) {
	defer close(n.done)
	s := &session{Node: n, waits: newWaits(30 * time.Second), savedAs: n.status.SavedRevision, reports: make(chan reportDone, 1)}
	for ctx.Err() == nil {
		drained, err := s.follow(ctx)
		if ctx.Err() != nil {
			break
		}
		wait := s.after(err, drained)
		n.publish(func() {
			n.status.Connected, n.status.Problem = false, err.Error()
			n.status.Silent = n.status.Silent || errors.Is(err, errSilent)
		})
		s.pause(ctx, wait)
	}
	s.finish()
}

// after says how long to wait after a stream has ended.
func (s *session) after(err error, drained time.Duration) time.Duration {
	var other otherInstallationError
	switch {
	case errors.Is(err, errDrain):
		s.waits = newWaits(30 * time.Second)
		return min(drained, longestDrain)
	case errors.Is(err, errDigests):
		// A snapshot is asked for at once; if that does not help, this node can't mend it.
		if s.mismatches++; s.mismatches == 1 {
			return 0
		}
	case errors.Is(err, errProtocol):
		if s.violations++; s.violations > 1 {
			// Resuming has failed twice: start over with a snapshot.
			s.replica.resumable = false
		}
	case errors.As(err, &other):
	default:
		// Another replica may do better.
		s.turn++
	}
	s.logger.Warn("the stream from learning-svc is closed", "error", err)
	wait := s.waits.take()
	var known *Error
	if errors.As(err, &known) {
		wait = max(wait, min(known.RetryAfter, longestDrain))
	}
	return wait
}

// pause waits, but not after the node is told to accept another installation.
func (s *session) pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.accepted:
	case <-ctx.Done():
	}
}

func (s *session) request() *learningpb.SubscribeRequest {
	s.lock.RLock()
	s.replica.accepted = s.config.AcceptInstallation
	s.lock.RUnlock()
	return &learningpb.SubscribeRequest{
		Node: &learningpb.NodeInfo{
			Id: s.config.ID, Version: s.config.Version, Zone: s.config.Zone, Labels: s.config.Labels,
		},
		Namespaces: s.config.Namespaces, Kinds: s.config.Kinds, IncludeUserScoped: s.config.UserScoped,
		Cursor: s.replica.open(), BookmarkInterval: durationpb.New(s.config.BookmarkInterval),
	}
}

// follow applies the messages of one stream until it ends. Returns when to come back if the server said so.
func (s *session) follow(ctx context.Context) (time.Duration, error) {
	connection, err := s.config.Connection.startingAt(s.turn).dial()
	if err != nil {
		return 0, err
	}
	defer func() {
		if err := connection.Close(); err != nil {
			s.logger.Debug("a connection did not close", "error", err)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(firstMessage, func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, err := s.subscribe(ctx, connection)
	if err != nil {
		return 0, s.why(ctx, err)
	}
	client := learningpb.NewSubscriptionServiceClient(connection)
	for {
		var encoded []byte
		if err := stream.RecvMsg(&encoded); err != nil {
			return 0, s.why(ctx, err)
		}
		watchdog.Reset(s.silence())
		done, err := s.replica.receive(encoded, s.publish)
		s.applied(done, err)
		if problem := problemOf(err); problem != "" {
			s.reportProblem(ctx, client, problem)
		}
		if err != nil {
			return done.after, err
		}
		s.report(ctx, client)
		s.save()
	}
}

// why is the cause of an end: a cancelled stream says only that it was cancelled.
func (s *session) why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(cause, errSilent) {
		return fmt.Errorf("%w for %s", errSilent, s.silence())
	}
	return explained(err, noAnswer)
}

func (s *session) subscribe(ctx context.Context, connection *grpc.ClientConn) (grpc.ClientStream, error) {
	description := &grpc.StreamDesc{StreamName: "Subscribe", ServerStreams: true}
	method := learningpb.SubscriptionService_Subscribe_FullMethodName
	stream, err := connection.NewStream(ctx, description, method, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(s.request()); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

// applied shows in the status what a message changed.
func (s *session) applied(done applied, err error) {
	var other otherInstallationError
	now := time.Now()
	s.publish(func() {
		s.lastMessage = now
		s.status.Silent = false
		s.status.OtherInstallation = ""
		if errors.As(err, &other) {
			s.status.OtherInstallation = string(other)
			return
		}
		s.status.Connected = true
		if errors.Is(err, errDigests) {
			s.status.InDoubt = true
		}
		if err != nil {
			return
		}
		if done.snapshot || done.resumed {
			s.status.Origin, s.status.CurrentAt = OriginStream, now
		}
		if done.snapshot || done.current >= 0 {
			s.status.InDoubt = false
		}
		if done.changes != nil {
			s.status.CurrentAt = now
		}
		if done.current >= 0 {
			s.status.CurrentAt = now.Add(-done.current)
		}
		s.status.Problem = ""
	})
	if done.current >= 0 {
		s.mismatches, s.violations = 0, 0
		s.waits = newWaits(30 * time.Second)
	}
	s.dirty = s.dirty || done.snapshot || done.changes != nil || done.current >= 0
	for _, change := range done.changes {
		if change.committedAt != nil {
			s.delays.add(now.Sub(change.committedAt.AsTime()))
		}
	}
	s.tell(done)
}

// tell calls OnChange.
func (s *session) tell(done applied) {
	if s.config.OnChange == nil || !done.snapshot && done.changes == nil {
		return
	}
	change := Change{Revision: s.replica.revision()}
	for _, one := range done.changes {
		if one.put != nil {
			change.Keys = append(change.Keys, one.put.id.message())
		} else if one.deleted != nil {
			change.Keys = append(change.Keys, one.deleted.message())
		}
	}
	s.config.OnChange(change)
}

func problemOf(err error) string {
	var other otherInstallationError
	switch {
	case errors.As(err, &other):
		return "INSTALLATION_MISMATCH"
	case errors.Is(err, errDigests):
		return "DIGEST_MISMATCH"
	case errors.Is(err, errProtocol):
		return "PROTOCOL_VIOLATION"
	default:
		return ""
	}
}

// reportProblem tells a server that is about to be left.
func (s *session) reportProblem(ctx context.Context, client learningpb.SubscriptionServiceClient, problem string) {
	ctx, cancel := context.WithTimeout(ctx, reportDeadline)
	defer cancel()
	report := s.replica.report(s.config.ID, &s.delays, problem)
	if report == nil {
		return
	}
	if _, err := client.ReportStatus(ctx, report); err != nil {
		s.logger.Warn("a problem cannot be reported", "problem", problem, "error", explained(err, noAnswer))
		return
	}
	s.delays = delays{}
}

// report tells the server what is applied, in the background, when that is due. What was not accepted goes into the next.
func (s *session) report(ctx context.Context, client learningpb.SubscriptionServiceClient) {
	if s.reporting {
		select {
		case done := <-s.reports:
			s.reporting = false
			if done.err != nil {
				s.logger.Warn("the server did not accept a report", "error", explained(done.err, noAnswer))
				s.delays.merge(done.delays)
			}
		default:
			return
		}
	}
	rejected := len(s.replica.held.rejected)
	if time.Since(s.reportedAt) < reportInterval && rejected == s.rejected {
		return
	}
	report := s.replica.report(s.config.ID, &s.delays, "")
	if report == nil {
		return
	}
	sent := s.delays
	s.delays, s.reportedAt, s.rejected, s.reporting = delays{}, time.Now(), rejected, true
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportDeadline)
		defer cancel()
		_, err := client.ReportStatus(ctx, report)
		s.reports <- reportDone{sent, err}
	}()
}

// save writes the copy in the background, when that is due.
func (s *session) save() {
	if s.path == "" {
		return
	}
	select {
	case err := <-s.saving:
		s.saved(err)
	default:
	}
	if s.saving != nil || !s.dirty || time.Since(s.savedAt) < s.config.CacheInterval && s.savedAs != 0 {
		return
	}
	s.startSave()
}

func (s *session) startSave() {
	if !s.replica.resumable || s.replica.position == nil {
		return
	}
	cursor, err := proto.Marshal(s.replica.position)
	if err != nil {
		s.saved(err)
		return
	}
	held := s.replica.held.resources
	copied := saved{entries: make([]savedEntry, 0, len(held)), header: cacheHeader{
		Subscription: s.subscription, Installation: s.replica.installation, Cursor: cursor,
		CurrentAt: s.status.CurrentAt, WrittenAt: time.Now(), Count: len(held),
	}}
	for id, resource := range held {
		copied.entries = append(copied.entries, savedEntry{id, resource})
	}
	s.dirty, s.savedAt, s.savingAs = false, time.Now(), s.replica.revision()
	done := make(chan error, 1)
	s.saving = done
	go func() { done <- copied.write(s.path) }()
}

func (s *session) saved(err error) {
	s.saving = nil
	if err != nil {
		s.dirty = true
		s.logger.Error("the copy of what was learned cannot be written", "error", err)
	} else {
		s.savedAs = s.savingAs
	}
	s.publish(func() {
		if err != nil {
			s.status.Problem = "the copy cannot be written: " + err.Error()
		}
		s.status.SavedRevision = s.savedAs
	})
}

// finish waits for the copy under way, and writes the last.
func (s *session) finish() {
	if s.saving != nil {
		s.saved(<-s.saving)
	}
	if s.path == "" || !s.dirty {
		return
	}
	if s.startSave(); s.saving != nil {
		s.saved(<-s.saving)
	}
}
