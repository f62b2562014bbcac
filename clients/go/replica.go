package emend

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// Why a stream ends that was not cut off.
var (
	errDigests  = errors.New("the digests differ from the server's")
	errDrain    = errors.New("the server drains this stream")
	errProtocol = errors.New("the server broke the protocol of the stream")
)

// Another installation answers than the one whose resources are held.
type otherInstallationError string

func (e otherInstallationError) Error() string { return "another installation answers: " + string(e) }

func violation(format string, parts ...any) error {
	return fmt.Errorf("%w: %s", errProtocol, fmt.Sprintf(format, parts...))
}

type phase int

const (
	opened phase = iota
	live
	inSnapshot
	inUpdate
)

// A replica is the stream's protocol: messages go in, and what is held is always one complete state of the server. It checks
// the order of revisions, counts, digests and each value's checksum. A message that breaks the protocol changes nothing held.
type replica struct {
	held *holdings
	// position is the state of the log that is held.
	position *learningpb.Cursor
	// resumable is false once digests have differed.
	resumable    bool
	installation string
	accepted     string

	phase  phase
	sent   *learningpb.Cursor
	staged *staging
	update wireUpdate
}

// A staging is what has arrived of a snapshot.
type staging struct {
	held            *holdings
	installation    string
	revision, count int64
}

// An applied says what a message changed: everything if the changes are nil.
type applied struct {
	// snapshot is set if everything was replaced.
	snapshot bool
	// resumed is set if the stream goes on from what is held.
	resumed bool
	changes []wireChange
	// current is how old the server's state is, once nothing is missing; negative for any other message.
	current time.Duration
	// after is when the server asks to come back.
	after time.Duration
}

func newReplica() *replica { return &replica{held: newHoldings()} }

// open prepares for a new stream and returns the cursor to send.
func (r *replica) open() *learningpb.Cursor {
	r.phase, r.staged, r.sent = opened, nil, nil
	r.update = wireUpdate{}
	if r.resumable {
		r.sent = r.position
	}
	return r.sent
}

func (r *replica) revision() int64 { return r.position.GetRevision() }

// receive applies one message. After an error the stream must be closed. What is to be seen by look-ups is changed within
// publish alone.
func (r *replica) receive(encoded []byte, publish func(func())) (applied, error) {
	none := applied{current: -1}
	message, err := decodeMessage(encoded)
	if err != nil {
		return none, violation("a message cannot be read: %v", err)
	}
	switch {
	case message.chunk != nil:
		return none, r.chunk(message.chunk)
	case message.update != nil:
		return r.part(message.update, publish)
	}
	switch message := message.other.GetMessage().(type) {
	case *learningpb.SubscribeResponse_Resumed:
		return applied{resumed: true, current: -1}, r.resumed(message.Resumed, publish)
	case *learningpb.SubscribeResponse_SnapshotBegin:
		return none, r.begin(message.SnapshotBegin)
	case *learningpb.SubscribeResponse_SnapshotEnd:
		return r.end(message.SnapshotEnd, publish)
	case *learningpb.SubscribeResponse_Bookmark:
		return r.bookmark(message.Bookmark, publish)
	case *learningpb.SubscribeResponse_Drain:
		none.after = max(message.Drain.GetReconnectAfter().AsDuration(), 0)
		return none, errDrain
	default:
		return none, nil
	}
}

// check says whether a stream of this installation may be used.
func (r *replica) check(installation string) error {
	known := r.installation
	switch {
	case known != "" && installation == "":
		return violation("the installation has no id")
	case known == "" || known == installation || installation == r.accepted || len(r.held.resources) == 0:
		return nil
	default:
		r.phase, r.sent = opened, nil
		return otherInstallationError(installation)
	}
}

func (r *replica) resumed(message *learningpb.Resumed, publish func(func())) error {
	if r.phase != opened {
		return violation("Resumed is not allowed at this point")
	}
	if r.sent == nil || !sameCursor(message.GetCursor(), r.sent) {
		return violation("the cursor of Resumed is not the one that was sent")
	}
	if err := r.check(message.GetInstallationId()); err != nil {
		return err
	}
	r.phase = live
	publish(func() { r.installation = message.GetInstallationId() })
	return nil
}

func (r *replica) begin(message *learningpb.SnapshotBegin) error {
	if message.GetResourceCount() < 0 {
		return violation("the count of SnapshotBegin is negative")
	}
	if err := r.check(message.GetInstallationId()); err != nil {
		return err
	}
	r.phase = inSnapshot
	r.staged = &staging{
		held: newHoldings(), installation: message.GetInstallationId(), revision: message.GetRevision(),
		count: message.GetResourceCount(),
	}
	return nil
}

func (r *replica) chunk(chunk *wireChunk) error {
	if r.phase != inSnapshot {
		return violation("SnapshotChunk is not allowed at this point")
	}
	for index := range chunk.resources {
		resource := &chunk.resources[index]
		switch {
		case !resource.hasKey:
			return violation("a resource of SnapshotChunk has no key")
		case resource.revision > r.staged.revision:
			return violation("SnapshotChunk has a resource that is newer than the snapshot")
		case r.staged.held.has(resource.id):
			return violation("SnapshotChunk repeats a key")
		}
		r.staged.held.put(resource)
		if int64(len(r.staged.held.resources)) > r.staged.count {
			return violation("a snapshot has more than the %d resources that it announced", r.staged.count)
		}
	}
	return nil
}

func (r *replica) end(message *learningpb.SnapshotEnd, publish func(func())) (applied, error) {
	done := applied{snapshot: true, current: -1}
	if r.phase != inSnapshot {
		return done, violation("SnapshotEnd is not allowed at this point")
	}
	staged := r.staged
	r.phase, r.staged, r.sent = opened, nil, nil
	if message.GetCursor() == nil || message.GetCursor().GetRevision() != staged.revision {
		return done, violation("the cursor of SnapshotEnd is missing or of another revision")
	}
	if have := int64(len(staged.held.resources)); have != staged.count {
		return done, violation("a snapshot that announced %d resources has %d", staged.count, have)
	}
	sent, err := parseDigests(message.GetDigests())
	if err != nil {
		return done, err
	}
	// Used even if the digests differ: what was held is older, and a corrupt value is refused by its own checksum.
	differs := staged.held.differs(sent, true)
	publish(func() {
		r.held, r.installation, r.position = staged.held, staged.installation, message.GetCursor()
	})
	r.resumable, r.phase = !differs, live
	if differs {
		return done, errDigests
	}
	return done, nil
}

func (r *replica) part(part *wireUpdate, publish func(func())) (applied, error) {
	done := applied{current: -1}
	if r.phase != live && r.phase != inUpdate || r.position == nil {
		return done, violation("Update is not allowed at this point")
	}
	held := r.revision()
	if part.from > held {
		return done, violation("an update begins at revision %d, but this node is at %d", part.from, held)
	}
	if part.to <= held {
		return done, violation("revision %d is not newer than this node's, %d", part.to, held)
	}
	changes := part.changes
	if r.phase == inUpdate {
		if part.from != r.update.from || part.to != r.update.to {
			return done, violation("the parts of an Update are of different updates")
		}
		changes = append(r.update.changes, part.changes...)
	}
	if !part.last {
		r.phase, r.update = inUpdate, wireUpdate{from: part.from, to: part.to, changes: changes}
		return done, nil
	}
	r.phase, r.update = live, wireUpdate{}
	if part.cursor == nil || part.cursor.GetRevision() != part.to || !follows(r.position, part.cursor) {
		return done, violation("the cursor of Update is missing, or of another epoch, filter or revision")
	}
	if err := checkOrder(changes, held, part.to); err != nil {
		return done, err
	}
	sent, err := parseDigests(part.digests)
	if err != nil {
		return done, err
	}
	publish(func() {
		for index := range changes {
			if change := &changes[index]; change.put != nil {
				r.held.put(change.put)
			} else if change.deleted != nil {
				r.held.remove(*change.deleted)
			}
		}
		r.position = part.cursor
	})
	done.changes = changes
	if r.held.differs(sent, false) {
		r.resumable = false
		return done, errDigests
	}
	return done, nil
}

func checkOrder(changes []wireChange, held, to int64) error {
	least := held + 1
	for _, change := range changes {
		switch {
		case change.revision <= held:
			return violation("revision %d is not newer than this node's, %d", change.revision, held)
		case change.revision < least || change.revision > to:
			return violation("the changes of Update are not in order")
		case change.put != nil && !change.put.hasKey:
			return violation("a resource of Update has no key")
		case change.put != nil && change.put.revision != change.revision:
			return violation("a resource's revision differs from its change's")
		}
		least = change.revision
	}
	return nil
}

func (r *replica) bookmark(message *learningpb.Bookmark, publish func(func())) (applied, error) {
	done := applied{current: -1}
	if r.phase != live || r.position == nil {
		return done, violation("Bookmark is not allowed at this point")
	}
	cursor := message.GetCursor()
	if cursor == nil || !follows(r.position, cursor) {
		return done, violation("the cursor of Bookmark is missing, or of another epoch or filter")
	}
	if cursor.GetRevision() < r.revision() {
		return done, violation("revision %d is not newer than this node's, %d", cursor.GetRevision(), r.revision())
	}
	sent, err := parseDigests(message.GetDigests())
	if err != nil {
		return done, err
	}
	if r.held.differs(sent, true) {
		// Something at or below that revision is missing, so the position stays as it was.
		r.resumable = false
		return done, errDigests
	}
	publish(func() { r.position = cursor })
	done.current = max(message.GetAge().AsDuration(), 0)
	return done, nil
}

func sameCursor(one, other *learningpb.Cursor) bool {
	return one != nil && follows(one, other) && one.GetRevision() == other.GetRevision()
}

// follows says whether both are of the same epoch and filter.
func follows(position, cursor *learningpb.Cursor) bool {
	return position.GetEpoch() == cursor.GetEpoch() && position.GetFilterHash() == cursor.GetFilterHash()
}

func parseDigests(sent []*learningpb.Digest) (map[group]digest, error) {
	parsed := make(map[group]digest, len(sent))
	for _, one := range sent {
		hash := one.GetHash()
		if len(hash) != 16 {
			return nil, violation("the hash of a digest has not 16 bytes")
		}
		of := group{one.GetNamespace(), int32(one.GetKind()), one.GetUserScoped()}
		parsed[of] = digest{one.GetCount(), binary.BigEndian.Uint64(hash[:8]), binary.BigEndian.Uint64(hash[8:])}
	}
	return parsed, nil
}

// report is what the server is told: how far this node is, and what it cannot use.
func (r *replica) report(nodeID string, delays *delays, problem string) *learningpb.ReportStatusRequest {
	if r.position == nil {
		return nil
	}
	report := &learningpb.ReportStatusRequest{
		NodeId: nodeID, Applied: r.position, Delays: delays.message(), Problem: problem,
		RejectedCount: int64(len(r.held.rejected)),
	}
	newest := slices.SortedFunc(maps.Keys(r.held.rejected), func(one, other identity) int {
		newer := r.held.resources[other].revision - r.held.resources[one].revision
		if newer != 0 {
			return int(newer)
		}
		return other.compare(one)
	})
	for _, id := range newest[:min(len(newest), 100)] {
		report.Rejected = append(report.Rejected, &learningpb.RejectedResource{
			Key: id.message(), Revision: r.held.resources[id].revision, Error: r.held.rejected[id],
		})
	}
	return report
}
