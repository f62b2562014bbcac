package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	commonpb "emend.example/search-node/gen/emend/common/v1"
	learningpb "emend.example/search-node/gen/emend/learning/v1"
)

const (
	phraseKind = commonpb.ResourceKind_RESOURCE_KIND_INVOCATION_PHRASE
	maxBackoff = 30 * time.Second
)

var errMismatch = errors.New("the digests of what the node holds differ from the server's")

// Another installation answers than the one whose resources the node holds.
type errOtherInstallation string

func (e errOtherInstallation) Error() string {
	return "another installation answers: " + string(e)
}

// Node follows the stream in a goroutine of its own, and answers look-ups, which never wait for the network.
type Node struct {
	client          learningpb.SubscriptionServiceClient
	id, namespace   string
	state           string
	accept          string
	bookmarkSeconds int64

	// Look-ups read, the stream writes.
	lock  sync.RWMutex
	held  *Holdings
	how   string
	other string
	saved int64

	current    chan struct{}
	once       sync.Once
	problem    string
	delays     []int64
	delaysSum  int64
	reportedAt time.Time
}

// NewNode starts from the copy on disk, if there is one. It accepts the installation accept even if it holds another's
// resources.
func NewNode(
	connection *grpc.ClientConn, id, namespace, state, accept string, bookmarkSeconds int64,
) (*Node, error) {
	node := &Node{
		client:          learningpb.NewSubscriptionServiceClient(connection),
		id:              id,
		namespace:       namespace,
		state:           state,
		accept:          accept,
		bookmarkSeconds: bookmarkSeconds,
		held:            newHoldings(),
		how:             "never connected",
		current:         make(chan struct{}),
		delays:          make([]int64, len(bounds)+1),
	}
	return node, node.load()
}

// [follow]
// Run connects, follows the stream until it ends, and connects again, perhaps to another replica.
func (n *Node) Run(ctx context.Context) {
	backoff := 100 * time.Millisecond
	for ctx.Err() == nil {
		wait, err := n.follow(ctx)
		if err == nil {
			backoff = 100 * time.Millisecond
		} else {
			var other errOtherInstallation
			if !errors.As(err, &other) || string(other) != n.other {
				log.Printf("the stream ended: %v", err)
			}
			if errors.Is(err, errMismatch) {
				// Without a cursor the server sends a snapshot, which repairs the node.
				n.held.cursor, n.problem = nil, "DIGEST_MISMATCH"
			} else if errors.As(err, &other) {
				// Keep what is held: another replica, or a repaired server, may answer next time.
				n.isOther(string(other))
				n.problem = "INSTALLATION_MISMATCH"
				n.report(ctx)
			}
			wait, backoff = jitter(backoff), min(backoff*2, maxBackoff)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// Follows one stream. Returns how long to wait before the next.
func (n *Node) follow(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := n.client.Subscribe(ctx, &learningpb.SubscribeRequest{
		Node:             &learningpb.NodeInfo{Id: n.id, Version: "1.0"},
		Namespaces:       []string{n.namespace},
		Cursor:           n.held.cursor,
		BookmarkInterval: &durationpb.Duration{Seconds: n.bookmarkSeconds},
	})
	if err != nil {
		return 0, err
	}
	coming := newHoldings()
	var changes []*learningpb.Change
	for {
		message, err := stream.Recv()
		if err != nil {
			return 0, err
		}
		switch message := message.GetMessage().(type) {
		case *learningpb.SubscribeResponse_Resumed:
			if n.held.installation, err = n.accepted(message.Resumed.GetInstallationId()); err != nil {
				return 0, err
			}
			n.isCurrent("resumed")
		case *learningpb.SubscribeResponse_SnapshotBegin:
			// What is held stays in use until the snapshot is complete.
			coming = newHoldings()
			if coming.installation, err = n.accepted(message.SnapshotBegin.GetInstallationId()); err != nil {
				return 0, err
			}
		case *learningpb.SubscribeResponse_SnapshotChunk:
			chunk := message.SnapshotChunk
			for _, resource := range chunk.GetResources() {
				// What nearly all keys have in common is sent once.
				if key := resource.GetKey(); key.GetNamespace() == "" {
					key.Namespace = chunk.GetNamespace()
				}
				if key := resource.GetKey(); key.GetKind() == 0 {
					key.Kind = chunk.GetKind()
				}
				coming.put(resource)
			}
		case *learningpb.SubscribeResponse_SnapshotEnd:
			coming.cursor = message.SnapshotEnd.GetCursor()
			n.lock.Lock()
			n.held = coming
			n.lock.Unlock()
			if n.held.differs(message.SnapshotEnd.GetDigests(), true) {
				return 0, errMismatch
			}
			n.isCurrent("snapshot")
		case *learningpb.SubscribeResponse_Update:
			changes = append(changes, message.Update.GetChanges()...)
			if message.Update.GetLast() {
				n.apply(changes, message.Update.GetCursor())
				changes = nil
				if n.held.differs(message.Update.GetDigests(), false) {
					return 0, errMismatch
				}
			}
		case *learningpb.SubscribeResponse_Bookmark:
			n.lock.Lock()
			n.held.cursor = message.Bookmark.GetCursor()
			n.lock.Unlock()
			if n.held.differs(message.Bookmark.GetDigests(), true) {
				return 0, errMismatch
			}
			if err := n.save(); err != nil {
				return 0, err
			}
		case *learningpb.SubscribeResponse_Drain:
			return message.Drain.GetReconnectAfter().AsDuration(), nil
		default:
			// Any other message is one that only newer servers send: skip it.
		}
		n.report(ctx)
	}
}

// Returns the installation that answers, if the node may take anything from it.
func (n *Node) accepted(installation string) (string, error) {
	known := n.held.installation
	if len(n.held.resources) > 0 && known != "" && installation != known && installation != n.accept {
		return known, errOtherInstallation(installation)
	}
	n.isOther("")
	return installation, nil
}

// Applies all of an update at once: what one revision changed becomes visible together.
func (n *Node) apply(changes []*learningpb.Change, cursor *learningpb.Cursor) {
	n.lock.Lock()
	for _, change := range changes {
		if put := change.GetPut(); put != nil {
			n.held.put(put)
		} else {
			n.held.remove(change.GetDeleted())
		}
	}
	n.held.cursor = cursor
	n.lock.Unlock()
	for _, change := range changes {
		n.countDelay(time.Since(change.GetCommittedAt().AsTime()).Milliseconds())
	}
}

// [/follow]

// [report]
var bounds = []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000}

func (n *Node) countDelay(milliseconds int64) {
	bucket := 0
	for bucket < len(bounds) && bounds[bucket] < milliseconds {
		bucket++
	}
	n.delays[bucket]++
	n.delaysSum += milliseconds
}

// Reports what was applied, not what was received: at most every ten seconds, a problem at once.
func (n *Node) report(ctx context.Context) {
	if n.held.cursor == nil || (time.Since(n.reportedAt) < 10*time.Second && n.problem == "") {
		return
	}
	report := &learningpb.ReportStatusRequest{
		NodeId:  n.id,
		Applied: n.held.cursor,
		Delays:  &learningpb.DelayHistogram{BoundsMs: bounds, Counts: n.delays, SumMs: n.delaysSum},
		Problem: n.problem,
	}
	for _, held := range n.held.resources {
		if held.GetValue().GetValue() != nil {
			continue
		}
		report.RejectedCount++
		if len(report.Rejected) < 100 {
			report.Rejected = append(report.Rejected, &learningpb.RejectedResource{
				Key: held.GetKey(), Revision: held.GetRevision(), Error: "unknown kind",
			})
		}
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := n.client.ReportStatus(within, report); err != nil {
		return // The next report will contain it.
	}
	n.reportedAt, n.problem = time.Now(), ""
	n.delays, n.delaysSum = make([]int64, len(bounds)+1), 0
}

// [/report]

// [resolve]
// Resolve returns the learned verb, unless it is prohibited, and its revision; and the prohibited choices.
func (n *Node) Resolve(phrase, user string) (string, int64, map[string]bool) {
	key := normalise(phrase)
	n.lock.RLock()
	defer n.lock.RUnlock()
	prohibited := map[string]bool{}
	for id := range n.held.prohibited[key] {
		if id.user == "" || id.user == user {
			prohibited[id.qualifier] = true
		}
	}
	// The user's own comes first.
	for _, owner := range []string{user, ""} {
		id := identity{group{n.namespace, phraseKind, owner != ""}, key, "", owner}
		found := n.held.resources[id]
		verb := found.GetValue().GetInvocationPhrase().GetVerb()
		if verb != "" && !prohibited[verb] {
			return verb, found.GetRevision(), prohibited
		}
	}
	return "", 0, prohibited
}

// [/resolve]

// [save]
// The copy on disk.
type diskCopy struct {
	Installation string   `json:"installation"`
	Cursor       []byte   `json:"cursor"`
	Resources    [][]byte `json:"resources"`
}

// Writes a copy to start from while learning-svc is down. It is replaced completely or not at all.
func (n *Node) save() error {
	if n.state == "" {
		return nil
	}
	copied := diskCopy{Installation: n.held.installation}
	var err error
	if copied.Cursor, err = proto.Marshal(n.held.cursor); err != nil {
		return err
	}
	for _, resource := range n.held.resources {
		bytes, err := proto.Marshal(resource)
		if err != nil {
			return err
		}
		copied.Resources = append(copied.Resources, bytes)
	}
	text, err := json.Marshal(copied)
	if err != nil {
		return err
	}
	file, err := os.Create(n.state + ".new")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(n.state+".new", n.state); err != nil {
		return err
	}
	n.lock.Lock()
	n.saved = n.held.cursor.GetRevision()
	n.lock.Unlock()
	return nil
}

func (n *Node) load() error {
	text, err := os.ReadFile(n.state)
	if n.state == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var copied diskCopy
	if err := json.Unmarshal(text, &copied); err != nil {
		return fmt.Errorf("%s: %w", n.state, err)
	}
	for _, bytes := range copied.Resources {
		resource := &commonpb.Resource{}
		if err := proto.Unmarshal(bytes, resource); err != nil {
			return fmt.Errorf("%s: %w", n.state, err)
		}
		n.held.put(resource)
	}
	n.held.installation = copied.Installation
	n.held.cursor = &learningpb.Cursor{}
	return proto.Unmarshal(copied.Cursor, n.held.cursor)
}

// [/save]

func (n *Node) isCurrent(how string) {
	n.lock.Lock()
	n.how = how
	n.lock.Unlock()
	n.once.Do(func() { close(n.current) })
}

func (n *Node) isOther(installation string) {
	n.lock.Lock()
	n.other = installation
	n.lock.Unlock()
}

// WaitUntilCurrent returns once the node has been current, or after ten seconds.
func (n *Node) WaitUntilCurrent() {
	select {
	case <-n.current:
	case <-time.After(10 * time.Second):
	}
}

// Status describes what the node holds.
func (n *Node) Status() map[string]any {
	n.lock.RLock()
	defer n.lock.RUnlock()
	return map[string]any{
		"connected":          n.how,
		"revision":           n.held.cursor.GetRevision(),
		"resources":          len(n.held.resources),
		"saved":              n.saved,
		"other_installation": n.other,
	}
}
