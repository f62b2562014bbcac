package emend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
)

// NodeConfig says what a node subscribes to and how it behaves.
type NodeConfig struct {
	// Connection is where learning-svc is.
	Connection Connection
	// ID is the node's, unique in an installation: 1 to 128 characters of [A-Za-z0-9._:-].
	ID string
	// Version and Zone describe the node, at most 64 characters each.
	Version, Zone string
	// Labels describe the node, too.
	Labels map[string]string
	// Namespaces are the search applications to follow. Default: all that the caller may read.
	Namespaces []string
	// Kinds are those to follow. Default: all.
	Kinds []commonpb.ResourceKind
	// UserScoped follows what is users' own, too.
	UserScoped bool
	// CacheDir keeps a copy to start from while learning-svc is away, in a file named after the node. It must exist. No two
	// running nodes may share a file. Default: no copy.
	CacheDir string
	// CacheInterval is the least time between two writes of the copy. Default: 30 s.
	CacheInterval time.Duration
	// BookmarkInterval is how often the server says that nothing is missing, 1 s to 10 s. Default: 10 s. A server that says
	// nothing for twice as long and 5 s more is silent.
	BookmarkInterval time.Duration
	// AcceptInstallation is the id of an installation to accept although another's resources are held.
	AcceptInstallation string
	// OnChange is called for each change after it can be looked up, in order, from one goroutine; of a snapshot with no keys,
	// since everything may have changed. It must not block: updates wait for it.
	OnChange func(Change)
	// Logger is told what goes wrong. Default: [slog.Default].
	Logger *slog.Logger
}

// A Change says what an update changed.
type Change struct {
	// Revision is that of the state that has it.
	Revision int64
	// Keys are the resources that were put or deleted; nil where everything was replaced.
	Keys []*commonpb.ResourceKey
}

// An Origin says where the state comes from that a node answers from.
type Origin string

// Where a state comes from.
const (
	// OriginNothing: no state has come yet.
	OriginNothing Origin = "nothing"
	// OriginDisk: from the copy, and not confirmed since.
	OriginDisk Origin = "disk"
	// OriginStream: from the stream, or confirmed by it.
	OriginStream Origin = "stream"
)

// A Status says how current a node is.
type Status struct {
	// Connected says whether a stream is open and the server spoke.
	Connected bool
	// Silent says that the server has said nothing for longer than it may.
	Silent bool
	// Revision is the one at or below which everything is applied.
	Revision int64
	// Resources is how many are held, Rejected how many of them this version cannot use.
	Resources, Rejected int
	// Installation is whose resources are held; empty before the first state.
	Installation string
	// OtherInstallation is the one that answers instead and is not accepted; empty if none does.
	OtherInstallation string
	// Epoch is that of the log; empty before the first state.
	Epoch string
	// Origin is where the state comes from.
	Origin Origin
	// CurrentAt is when the state was last known to be all there was, by this computer's clock; zero if never.
	CurrentAt time.Time
	// Age is how long ago that was; negative if never.
	Age time.Duration
	// InDoubt says that digests differed: a snapshot is on its way.
	InDoubt bool
	// SavedRevision is that of the copy on disk; 0 without one.
	SavedRevision int64
	// Problem is why the last stream ended, or why no copy can be read or written; empty if nothing is wrong.
	Problem string
}

// A Node follows the stream and answers look-ups from memory. It may be used by many goroutines.
type Node struct {
	config       NodeConfig
	path         string
	subscription string
	logger       *slog.Logger
	cancel       context.CancelFunc
	done         chan struct{}

	// Look-ups read, the stream's goroutine writes.
	lock        sync.RWMutex
	replica     *replica
	status      Status
	lastMessage time.Time
	changed     chan struct{}
	accepted    chan struct{}
}

var nodeID = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,128}$`)

// NewNode starts a node in the background, from the copy on disk if there is one. Close ends it. It fails only for settings that
// are not valid, with all of them.
func NewNode(config NodeConfig) (*Node, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	if config.BookmarkInterval == 0 {
		config.BookmarkInterval = 10 * time.Second
	}
	if config.CacheInterval == 0 {
		config.CacheInterval = 30 * time.Second
	}
	node := &Node{
		config: config, logger: config.Logger, done: make(chan struct{}), replica: newReplica(),
		status: Status{Origin: OriginNothing}, changed: make(chan struct{}), accepted: make(chan struct{}, 1),
		subscription: config.subscription(), lastMessage: time.Now(),
	}
	if node.logger == nil {
		node.logger = slog.Default()
	}
	if config.CacheDir != "" {
		node.path = filepath.Join(config.CacheDir, config.ID+".emend")
		node.restore()
	}
	node.replica.accepted = config.AcceptInstallation
	ctx, cancel := context.WithCancel(context.Background())
	node.cancel = cancel
	go node.run(ctx)
	return node, nil
}

func (c NodeConfig) validate() error {
	var violations []Violation
	if _, _, err := c.Connection.addresses(); err != nil {
		var known *Error
		if errors.As(err, &known) {
			violations = append(violations, known.Violations...)
		}
	}
	if !nodeID.MatchString(c.ID) {
		violations = append(violations, Violation{"node.id", "must be 1 to 128 characters of [A-Za-z0-9._:-]"})
	}
	if c.BookmarkInterval != 0 && (c.BookmarkInterval < time.Second || c.BookmarkInterval > 10*time.Second) {
		violations = append(violations, Violation{"bookmark_interval", "must be 1 s to 10 s"})
	}
	if c.CacheDir != "" {
		if about, err := os.Stat(c.CacheDir); err != nil || !about.IsDir() {
			violations = append(violations, Violation{"cache_dir", "must be a directory, is " + c.CacheDir})
		}
	}
	if len(violations) > 0 {
		return invalidFields(violations)
	}
	// Files that are missing are said now, too.
	dialled, err := c.Connection.dial()
	if err != nil {
		return err
	}
	return dialled.Close()
}

// subscription names what a copy is of, so that it is not used for another one.
func (c NodeConfig) subscription() string {
	namespaces := slices.Compact(slices.Sorted(slices.Values(c.Namespaces)))
	kinds := slices.Compact(slices.Sorted(slices.Values(c.Kinds)))
	return fmt.Sprintf("%s %v %v", strings.Join(namespaces, ","), kinds, c.UserScoped)
}

func (n *Node) restore() {
	if err := removeUnfinished(n.path); err != nil {
		n.logger.Warn("what an earlier run left unfinished cannot be removed", "error", err)
	}
	restored, header, err := load(n.path, n.subscription)
	if err != nil {
		n.logger.Warn("the copy on disk is not used", "error", err)
		n.status.Problem = err.Error()
	}
	if restored != nil {
		n.replica = restored
		n.status.Origin, n.status.CurrentAt = OriginDisk, header.CurrentAt
		n.status.SavedRevision = restored.revision()
	}
}

// Close ends the stream, brings the copy on disk up to date, and returns once that is done.
func (n *Node) Close() error {
	n.cancel()
	<-n.done
	return nil
}

// AcceptInstallation accepts another installation from now on: its snapshot replaces what is held.
func (n *Node) AcceptInstallation(id string) {
	n.lock.Lock()
	n.config.AcceptInstallation = id
	n.lock.Unlock()
	select {
	case n.accepted <- struct{}{}:
	default:
		// It is told already.
	}
}

// Status says how current the node is.
func (n *Node) Status() Status {
	n.lock.RLock()
	defer n.lock.RUnlock()
	status := n.status
	status.Silent = status.Silent || time.Since(n.lastMessage) > n.silence()
	status.Revision, status.Epoch = n.replica.revision(), n.replica.position.GetEpoch()
	status.Installation = n.replica.installation
	status.Resources, status.Rejected = len(n.replica.held.resources), len(n.replica.held.rejected)
	status.Age = -1
	if !status.CurrentAt.IsZero() {
		status.Age = max(time.Since(status.CurrentAt), 0)
	}
	return status
}

// silence is how long a server may say nothing.
func (n *Node) silence() time.Duration { return 2*n.config.BookmarkInterval + 5*time.Second }

// WaitReady waits until there is a state to answer from: the copy on disk or the first of the stream, even an empty one.
func (n *Node) WaitReady(ctx context.Context) error {
	return n.wait(ctx, func() bool { return n.status.Origin != OriginNothing })
}

// WaitForRevision waits until everything at or below a revision is applied, to read what was written.
func (n *Node) WaitForRevision(ctx context.Context, revision int64) error {
	return n.wait(ctx, func() bool { return n.replica.revision() >= revision })
}

func (n *Node) wait(ctx context.Context, reached func() bool) error {
	for {
		n.lock.RLock()
		is, changed := reached(), n.changed
		n.lock.RUnlock()
		if is {
			return nil
		}
		select {
		case <-changed:
		case <-n.done:
			return &Error{Message: "the node is closed", Code: 9, Reason: "CLOSED"}
		case <-ctx.Done():
			status := n.Status()
			why := noAnswer
			if status.Problem != "" {
				why += "; " + status.Problem
			}
			return explained(ctx.Err(), why)
		}
	}
}

// publish changes what look-ups and the status show, and wakes who waits.
func (n *Node) publish(change func()) {
	n.lock.Lock()
	defer n.lock.Unlock()
	change()
	close(n.changed)
	n.changed = make(chan struct{})
}
