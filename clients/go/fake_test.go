package emend

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	feedbackpb "emend.dev/clients/go/gen/emend/feedback/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// A server that says what a test tells it to.
type fake struct {
	feedbackpb.UnimplementedFeedbackServiceServer
	learningpb.UnimplementedSubscriptionServiceServer
	learningpb.UnimplementedProfileServiceServer
	submit    func(*feedbackpb.SubmitFeedbackRequest) (*feedbackpb.SubmitFeedbackResponse, error)
	subscribe func(*learningpb.SubscribeRequest, grpc.ServerStreamingServer[learningpb.SubscribeResponse]) error
	rank      func(*learningpb.RankLearningsRequest) (*learningpb.RankLearningsResponse, error)

	lock    sync.Mutex
	reports []*learningpb.ReportStatusRequest
}

func (f *fake) SubmitFeedback(
	_ context.Context, request *feedbackpb.SubmitFeedbackRequest,
) (*feedbackpb.SubmitFeedbackResponse, error) {
	return f.submit(request)
}

func (f *fake) Subscribe(
	request *learningpb.SubscribeRequest, stream grpc.ServerStreamingServer[learningpb.SubscribeResponse],
) error {
	return f.subscribe(request, stream)
}

func (f *fake) RankLearnings(
	_ context.Context, request *learningpb.RankLearningsRequest,
) (*learningpb.RankLearningsResponse, error) {
	return f.rank(request)
}

func (f *fake) ReportStatus(
	_ context.Context, report *learningpb.ReportStatusRequest,
) (*learningpb.ReportStatusResponse, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.reports = append(f.reports, report)
	return &learningpb.ReportStatusResponse{}, nil
}

func (f *fake) problems() (problems []string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, report := range f.reports {
		problems = append(problems, report.GetProblem())
	}
	return problems
}

func (f *fake) start(t *testing.T) Connection {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	feedbackpb.RegisterFeedbackServiceServer(server, f)
	learningpb.RegisterSubscriptionServiceServer(server, f)
	learningpb.RegisterProfileServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return Connection{Address: listener.Addr().String()}
}

func TestASubmissionIsTriedAgainWithItsRequestIDAfterTheWaitAskedFor(t *testing.T) {
	var ids []string
	var at []time.Time
	server := &fake{submit: func(request *feedbackpb.SubmitFeedbackRequest) (*feedbackpb.SubmitFeedbackResponse, error) {
		ids, at = append(ids, request.GetRequestId()), append(at, time.Now())
		if len(ids) == 1 {
			busy := status.New(codes.ResourceExhausted, "busy")
			busy, _ = busy.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(400 * time.Millisecond)})
			return nil, busy.Err()
		}
		if len(ids) == 2 {
			return nil, status.Error(codes.Unavailable, "away")
		}
		return &feedbackpb.SubmitFeedbackResponse{Feedback: &feedbackpb.Feedback{FeedbackId: "f"}}, nil
	}}
	feedback := newFeedback(t, server.start(t))
	stored, err := feedback.Submit(t.Context(), Verb("a", "b"), Details{Reporter: "joe"})
	if err != nil || stored.GetFeedbackId() != "f" {
		t.Fatalf("%v %v", stored, err)
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Fatalf("request ids: %v", ids)
	}
	if waited := at[1].Sub(at[0]); waited < 400*time.Millisecond {
		t.Fatalf("it came back after %s", waited)
	}
}

func TestWhatThereIsToLearnIsOrderedForAUser(t *testing.T) {
	var asked []*learningpb.RankLearningsRequest
	server := &fake{rank: func(request *learningpb.RankLearningsRequest) (*learningpb.RankLearningsResponse, error) {
		asked = append(asked, request)
		if len(asked) == 1 {
			return nil, status.Error(codes.Unavailable, "away")
		}
		return &learningpb.RankLearningsResponse{Ids: []string{"k8s-101"}, LeftOutIds: []string{"rust-101"}}, nil
	}}
	review, err := NewReview(server.start(t), "fund-admin", "ana")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = review.Close() }()
	ranked, err := review.RankLearnings(context.Background(), "mia",
		&learningpb.Learning{Id: "rust-101", Topics: []string{"Rust"}},
		&learningpb.Learning{Id: "k8s-101", Topics: []string{"Kubernetes"}})
	if err != nil {
		t.Fatal(err)
	}
	if ids, left := ranked.GetIds(), ranked.GetLeftOutIds(); len(ids) != 1 || ids[0] != "k8s-101" || len(left) != 1 {
		t.Fatalf("not the order that the service gives: %v", ranked)
	}
	if len(asked) != 2 {
		t.Fatalf("a read is tried again: %d calls", len(asked))
	}
	request := asked[1]
	if request.GetNamespace() != "fund-admin" || request.GetUserId() != "mia" || len(request.GetLearnings()) != 2 ||
		request.GetLearnings()[1].GetId() != "k8s-101" {
		t.Fatalf("not what was asked: %v", request)
	}
}

func TestACallHasADeadlineAndSaysThatItMayBeStored(t *testing.T) {
	release := make(chan struct{})
	server := &fake{submit: func(*feedbackpb.SubmitFeedbackRequest) (*feedbackpb.SubmitFeedbackResponse, error) {
		<-release
		return nil, status.Error(codes.Internal, "late")
	}}
	connection := server.start(t)
	t.Cleanup(func() { close(release) })
	connection.Deadline = 200 * time.Millisecond
	_, err := newFeedback(t, connection).Submit(context.Background(), Verb("a", "b"), Details{})
	known, is := err.(*Error)
	if !is || known.Code != codes.DeadlineExceeded || !known.MayBeStored() || known.Message != noAnswerToChange {
		t.Fatalf("%v", err)
	}
}

// begin sends an empty snapshot whose digests are these.
func begin(
	stream grpc.ServerStreamingServer[learningpb.SubscribeResponse], digests ...*learningpb.Digest,
) (*learningpb.Cursor, error) {
	cursor := &learningpb.Cursor{Epoch: "e", Revision: 1}
	err := stream.Send(&learningpb.SubscribeResponse{Message: &learningpb.SubscribeResponse_SnapshotBegin{
		SnapshotBegin: &learningpb.SnapshotBegin{Revision: 1, InstallationId: "i"},
	}})
	if err == nil {
		err = stream.Send(&learningpb.SubscribeResponse{Message: &learningpb.SubscribeResponse_SnapshotEnd{
			SnapshotEnd: &learningpb.SnapshotEnd{Cursor: cursor, Digests: digests},
		}})
	}
	return cursor, err
}

func TestAServerThatAnswersPingsAndSaysNothingIsLeft(t *testing.T) {
	opened := make(chan *learningpb.Cursor, 10)
	server := &fake{subscribe: func(
		request *learningpb.SubscribeRequest, stream grpc.ServerStreamingServer[learningpb.SubscribeResponse],
	) error {
		opened <- request.GetCursor()
		if request.GetCursor() == nil {
			if _, err := begin(stream); err != nil {
				return err
			}
		}
		<-stream.Context().Done()
		return nil
	}}
	node := newNode(t, NodeConfig{Connection: server.start(t)})
	if err := node.WaitReady(within30(t)); err != nil {
		t.Fatal(err)
	}
	if first := <-opened; first != nil {
		t.Fatalf("it begins with %v", first)
	}
	if again := <-opened; again.GetRevision() != 1 {
		t.Fatalf("it resumes with %v", again)
	}
	if status := node.Status(); !status.Silent || !strings.Contains(status.Problem, "said nothing for 7s") {
		t.Fatalf("%+v", status)
	}
}

func TestDigestsThatDifferAreReportedAndASnapshotIsAskedFor(t *testing.T) {
	opened := make(chan *learningpb.Cursor, 10)
	wrong := &learningpb.Digest{Namespace: "n", Kind: 1, Count: 1, Hash: make([]byte, 16)}
	var count int
	server := &fake{subscribe: func(
		request *learningpb.SubscribeRequest, stream grpc.ServerStreamingServer[learningpb.SubscribeResponse],
	) error {
		opened <- request.GetCursor()
		digests := []*learningpb.Digest{wrong}
		if count++; count > 1 {
			digests = nil
		}
		if _, err := begin(stream, digests...); err != nil {
			return err
		}
		<-stream.Context().Done()
		return nil
	}}
	node := newNode(t, NodeConfig{Connection: server.start(t)})
	if first, second := <-opened, <-opened; first != nil || second != nil {
		t.Fatalf("it sent the cursors %v, %v", first, second)
	}
	eventually(t, "it is mended", func() bool { status := node.Status(); return status.Connected && !status.InDoubt })
	if problems := server.problems(); len(problems) == 0 || problems[0] != "DIGEST_MISMATCH" {
		t.Fatalf("reported: %v", problems)
	}
}

func TestADamagedCopyIsNotUsedAndSaysWhy(t *testing.T) {
	replica, _ := follow(t, func() object { _, states := read(t, "lookups"); return states["answers"] }())
	held := saved{header: cacheHeader{Subscription: "s", Count: len(replica.held.resources)}}
	for id, resource := range replica.held.resources {
		held.entries = append(held.entries, savedEntry{id, resource})
	}
	path := filepath.Join(t.TempDir(), "go-1.emend")
	if err := held.write(path); err != nil {
		t.Fatal(err)
	}
	restored, _, err := load(path, "s")
	if err != nil || len(restored.held.resources) != len(held.entries) || restored.held.differs(replica.held.digests, true) {
		t.Fatalf("a whole copy is read: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for place := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[place] ^= 1
		for _, text := range [][]byte{damaged, whole[:place]} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := load(path, "s"); err == nil {
				t.Fatalf("a copy that is damaged at %d is used", place)
			}
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := load(path, "other"); err == nil {
		t.Fatal("a copy of another subscription is used")
	}
}

func TestSettingsThatAreNotValidAreAllNamed(t *testing.T) {
	_, err := NewNode(NodeConfig{
		Connection: Connection{Address: "nowhere"}, ID: "a b", BookmarkInterval: time.Minute, CacheDir: "/nowhere",
	})
	for _, field := range []string{"address", "node.id", "bookmark_interval", "cache_dir"} {
		if err == nil || !strings.Contains(err.Error(), field+": ") {
			t.Errorf("%s is not in %v", field, err)
		}
	}
	_, err = NewFeedback(Connection{Address: "a:1", TLS: &TLS{CAFile: "/nowhere"}}, "n")
	if err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("a missing file is named: %v", err)
	}
}

func TestEachFormOfCorrectionIsSent(t *testing.T) {
	forms := map[string]Correction{
		"verb": Verb("a", "b"), "phrase_mapping": PhraseMapping("a", "b"), "entity": Entity("a", "b"),
		"prohibition":  Prohibition("a", "b"),
		"term":         Synonyms("a", commonpb.SynonymRelation_SYNONYM_RELATION_TYPO, "b"),
		"domain_block": BlockDomain("a.org"), "domain_unblock": UnblockDomain("a.org", 0),
		"domain_clear_override": ClearDomain("a.org"),
		"domain_set_trust":      TrustDomain("a.org", commonpb.TrustLevel_TRUST_LEVEL_LOW),
		"claim_reject":          RejectClaim("c", "SPAM"), "claim_restore": RestoreClaim("c"),
		"edge_correct": CorrectEdge("e", commonpb.EdgeRelation_EDGE_RELATION_REFUTES),
		"tuning":       Tuning("HYBRID", &commonpb.SearchTuningValue{}), "rating": RateOutput(&commonpb.Rating{}),
		"search_rating": SearchRating("q", -1),
	}
	message := (&commonpb.Correction{}).ProtoReflect()
	of := message.Descriptor().Oneofs().ByName("correction")
	for index := range of.Fields().Len() {
		name := string(of.Fields().Get(index).Name())
		form, has := forms[name]
		if !has {
			t.Errorf("no function makes a %s", name)
			continue
		}
		if set := form.Message().ProtoReflect().WhichOneof(of); set == nil || string(set.Name()) != name {
			t.Errorf("what should be %s is %v", name, form.Message())
		}
	}
	if Verb("a", "b").InsteadOf("c").Message().GetVerb().GetSystemChoice() != "c" {
		t.Error("a verb has no system choice")
	}
	if BlockDomain("a.org").InTask("t").Message().GetDomainBlock().GetTaskId() != "t" {
		t.Error("a block has no task")
	}
}
