package emend

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	accesspb "emend.dev/clients/go/gen/emend/access/v1"
	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	feedbackpb "emend.dev/clients/go/gen/emend/feedback/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// A pair is both services in one process, `emend up`.
type pair struct {
	t                  *testing.T
	command            *exec.Cmd
	feedback, learning string
}

// start runs the program that EMEND_TEST_PROGRAM names; without one the test is skipped.
func start(t *testing.T, arguments ...string) *pair {
	t.Helper()
	program := os.Getenv("EMEND_TEST_PROGRAM")
	if program == "" {
		t.Skip("EMEND_TEST_PROGRAM names no program to test against")
	}
	command := exec.Command(program, append([]string{"up"}, arguments...)...)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := &tail{}
	command.Stderr = said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, command: command}
	t.Cleanup(p.kill)
	ready := regexp.MustCompile(`ready feedback=(\S+) learning=(\S+)`)
	found := make(chan []string, 1)
	go func() {
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			if addresses := ready.FindStringSubmatch(lines.Text()); addresses != nil {
				found <- addresses
			}
		}
		close(found)
	}()
	select {
	case addresses := <-found:
		if addresses == nil {
			t.Fatalf("emend up ended:\n%s", said)
		}
		p.feedback, p.learning = addresses[1], addresses[2]
	case <-time.After(time.Minute):
		t.Fatalf("emend up is not ready after a minute:\n%s", said)
	}
	return p
}

// A tail keeps what was written last.
type tail struct {
	lock sync.Mutex
	text []byte
}

func (t *tail) Write(text []byte) (int, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-4000):]
	return len(text), nil
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return string(t.text)
}

// kill ends it as a crash does.
func (p *pair) kill() {
	if p.command.ProcessState == nil {
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
	}
}

// anyPorts listens on free ports of loopback.
func anyPorts(more ...string) []string {
	return append([]string{"--feedback-addr", "127.0.0.1:0", "--learning-addr", "127.0.0.1:0"}, more...)
}

func within30(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until a condition holds, at most 40 s.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 40 s", what)
		}
	}
}

func newNode(t *testing.T, config NodeConfig) *Node {
	t.Helper()
	config.ID, config.BookmarkInterval = "go-1", time.Second
	node, err := NewNode(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	return node
}

func newFeedback(t *testing.T, connection Connection) *Feedback {
	t.Helper()
	feedback, err := NewFeedback(connection, "fund-admin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = feedback.Close() })
	return feedback
}

// teach has three people say the same, and returns the revision that applied it.
func teach(t *testing.T, feedback *Feedback, phrase, verb string) int64 {
	t.Helper()
	var revision int64
	for _, reporter := range []string{"joe", "mia", "jane"} {
		stored, err := feedback.Submit(within30(t), Verb(phrase, verb), Details{Reporter: reporter, Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		revision = stored.GetOutcome().GetRevision()
	}
	if revision == 0 {
		t.Fatal("three votes did not apply it")
	}
	return revision
}

func choice(t *testing.T, node *Node, phrase string) string {
	t.Helper()
	answer, err := node.Resolve(Question{Namespace: "fund-admin", Phrase: phrase})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Choice
}

func TestACorrectionComesBackAndTheCopySurvivesCrashes(t *testing.T) {
	data, cache := filepath.Join(t.TempDir(), "data"), t.TempDir()
	pair := start(t, anyPorts("--data-dir", data)...)
	feedback := newFeedback(t, Connection{Address: pair.feedback})
	changes := make(chan Change, 100)
	config := NodeConfig{
		Connection: Connection{Address: pair.learning}, CacheDir: cache, CacheInterval: time.Millisecond,
		OnChange: func(change Change) { changes <- change },
	}
	node := newNode(t, config)
	if err := node.WaitReady(within30(t)); err != nil {
		t.Fatal(err)
	}
	revision := teach(t, feedback, "Set up a CSA", "create_csa")
	if err := node.WaitForRevision(within30(t), revision); err != nil {
		t.Fatal(err)
	}
	if found := choice(t, node, "ｓｅｔ up a csa"); found != "create_csa" {
		t.Fatalf("it answers %q", found)
	}
	for change := range changes {
		if len(change.Keys) == 1 && change.Keys[0].GetKey() == "set up a csa" {
			break
		}
	}
	eventually(t, "the copy is written", func() bool { return node.Status().SavedRevision >= revision })

	// The services crash, and come back at the same addresses: the node resumes.
	pair.kill()
	eventually(t, "it notices", func() bool { return !node.Status().Connected })
	if choice(t, node, "set up a csa") != "create_csa" {
		t.Fatal("it forgot")
	}
	again := start(t, "--data-dir", data, "--feedback-addr", pair.feedback, "--learning-addr", pair.learning)
	revision = teach(t, feedback, "close the fund", "close_fund")
	if err := node.WaitForRevision(within30(t), revision); err != nil {
		t.Fatal(err)
	}

	// A crash of the node in the middle of a write leaves the copy before it, and something to remove.
	eventually(t, "the copy is written", func() bool { return node.Status().SavedRevision >= revision })
	again.kill()
	if err := node.Close(); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(cache, "go-1.emend.1.new")
	if err := os.WriteFile(unfinished, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	offline := newNode(t, config)
	if offline.Status().Origin != OriginDisk || choice(t, offline, "close the fund") != "close_fund" {
		t.Fatalf("it does not start from the copy: %+v", offline.Status())
	}
	if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("what was unfinished is still there")
	}
}

func TestAReviewerApprovesExplainsAndUndoes(t *testing.T) {
	pair := start(t, anyPorts("--ephemeral")...)
	feedback := newFeedback(t, Connection{Address: pair.feedback})
	review, err := NewReview(Connection{Address: pair.learning}, "fund-admin", "ana")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = review.Close() }()
	stored, err := feedback.Submit(within30(t), Verb("pay", "pay_fee").InsteadOf("pay_invoice"),
		Details{Reporter: "joe", Reason: "wrong", Wait: true, RequestID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := feedback.Submit(within30(t), Verb("pay", "pay_fee").InsteadOf("pay_invoice"),
		Details{Reporter: "joe", Reason: "wrong", Wait: true, RequestID: "one"})
	if err != nil || twice.GetFeedbackId() != stored.GetFeedbackId() {
		t.Fatalf("a request id counts once: %v", err)
	}
	var waiting *learningpb.Candidate
	for candidate, err := range review.List(within30(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		waiting = candidate
	}
	decided, err := review.Approve(within30(t), waiting, Approval{Reason: "right"})
	if err != nil || decided.Revision == 0 {
		t.Fatalf("not approved: %v", err)
	}
	if _, err = review.Approve(within30(t), waiting, Approval{}); CodeOf(err) != codes.Aborted {
		t.Fatalf("what changed since is not decided again: %v", err)
	}
	explained, err := review.Explain(within30(t), waiting.GetCandidateId())
	if err != nil || len(explained.GetHistory()) == 0 || len(explained.GetVotes()) != 1 {
		t.Fatalf("not explained: %v %v", explained, err)
	}
	if _, err = review.Undo(within30(t), explained.GetCandidate()); err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, err := range feedback.List(within30(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		listed++
	}
	if listed != 1 {
		t.Fatalf("%d are listed", listed)
	}
	results, err := feedback.SubmitAll(within30(t), []Submission{
		{Prohibition("pay", "pay_invoice"), Details{Reporter: "joe"}}, {Verb("", "x"), Details{}},
	}, true)
	var refused *Error
	if err != nil || results[0].Err != nil || !errors.As(results[1].Err, &refused) || len(refused.Violations) == 0 {
		t.Fatalf("of a batch each has its result: %v %v", results, err)
	}
	_, err = feedback.Submit(within30(t), Verb("a", strings.Repeat("x", 300)), Details{})
	if !errors.As(err, &refused) || refused.Reason != "INVALID_FIELDS" ||
		!strings.Contains(refused.Error(), "correct_choice: must be 1 to 256 characters, has 300") {
		t.Fatalf("the field and its bound are named: %v", err)
	}
}

func TestAReviewerLooksAheadChangesPoliciesAndImports(t *testing.T) {
	pair := start(t, anyPorts("--ephemeral")...)
	feedback := newFeedback(t, Connection{Address: pair.feedback})
	review, err := NewReview(Connection{Address: pair.learning}, "fund-admin", "ana")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = review.Close() }()
	said, err := feedback.Submit(within30(t), PhraseMapping("pay", "pay_fee"), Details{Reporter: "joe", Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := review.Preview(within30(t), said.GetOutcome().GetCandidateId(),
		&learningpb.PreviewQuery{Text: "pay", SearchCount: 3})
	if err != nil || changes.GetChangedSearchCount() != 3 {
		t.Fatalf("what would change: %v %v", changes, err)
	}
	kind := commonpb.ResourceKind_RESOURCE_KIND_INVOCATION_PHRASE
	one := &learningpb.Policy{Kind: kind, Threshold: 1}
	preview, err := review.PreviewPolicy(within30(t), &learningpb.PreviewPolicyRequest{Policy: one, UpdateMask: threshold})
	if err != nil || preview.GetResourceCount() != 1 {
		t.Fatalf("what would be applied: %v %v", preview, err)
	}
	changed, err := review.UpdatePolicy(within30(t), &learningpb.UpdatePolicyRequest{Policy: one, UpdateMask: threshold})
	if err != nil || changed.GetThreshold() != 1 {
		t.Fatalf("not changed: %v %v", changed, err)
	}
	if read, err := review.Policy(within30(t), kind); err != nil || read.GetThreshold() != 1 {
		t.Fatalf("not read: %v %v", read, err)
	}
	if whole, err := review.NamespacePolicy(within30(t)); err != nil || whole.GetNamespace() != "fund-admin" {
		t.Fatalf("not read: %v %v", whole, err)
	}
	settings, err := feedback.UpdateSettings(within30(t), &feedbackpb.UpdateSettingsRequest{
		Settings: &feedbackpb.Settings{QueryRetention: durationpb.New(2 * time.Hour)}, Reason: "longer",
	})
	if err != nil || settings.GetQueryRetention().AsDuration() != 2*time.Hour {
		t.Fatalf("not changed: %v %v", settings, err)
	}
	ranked, err := review.RankLearnings(within30(t), "mia", &learningpb.Learning{Id: "go-101", Topics: []string{"Go"}})
	if err != nil || len(ranked.GetIds()) != 1 || ranked.GetIds()[0] != "go-101" {
		t.Fatalf("not ordered: %v %v", ranked, err)
	}
	for _, access := range []func(context.Context) (*accesspb.GetAccessResponse, error){review.Access, feedback.Access} {
		if may, err := access(within30(t)); err != nil || may.GetAuthenticated() {
			t.Fatalf("nobody is known here: %v %v", may, err)
		}
	}

	rows := func(count int, failure error) iter.Seq2[*learningpb.ImportRow, error] {
		return func(yield func(*learningpb.ImportRow, error) bool) {
			for number := range count {
				row := PhraseMapping(fmt.Sprintf("phrase %d", number), "go").Message()
				if !yield(&learningpb.ImportRow{Correction: row}, nil) {
					return
				}
			}
			if failure != nil {
				yield(nil, failure)
			}
		}
	}
	broken := errors.New("the file ends here")
	if _, err := review.Import(within30(t), nil, rows(700, broken)); !errors.Is(err, broken) {
		t.Fatalf("what makes rows fails: %v", err)
	}
	imported, err := review.Import(within30(t), &learningpb.ImportHeader{Reason: "a test"}, rows(1200, nil))
	if err != nil || imported.GetAppliedCount() != 1200 {
		t.Fatalf("not imported: %v %v", imported, err)
	}
	found, err := review.Resolve(within30(t), &learningpb.ResolveRequest{Kind: kind, Phrase: "PHRASE 1199"})
	if err != nil || found.GetMatch().GetValue() != "go" {
		t.Fatalf("not learned: %v %v", found, err)
	}
	bad := func(yield func(*learningpb.ImportRow, error) bool) { yield(&learningpb.ImportRow{}, nil) }
	var refused *Error
	if _, err := review.Import(within30(t), nil, bad); !errors.As(err, &refused) || refused.Code != codes.InvalidArgument {
		t.Fatalf("a bad row is refused: %v", err)
	}
}

var threshold = &fieldmaskpb.FieldMask{Paths: []string{"threshold"}}

// A proxy carries connections to a target until it is stalled: then it takes what is sent and passes on nothing.
type proxy struct {
	listener net.Listener
	target   string
	lock     sync.Mutex
	stalled  bool
	open     []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, target: target}
	t.Cleanup(func() {
		_ = listener.Close()
		p.lock.Lock()
		defer p.lock.Unlock()
		for _, connection := range p.open {
			_ = connection.Close()
		}
	})
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			p.lock.Lock()
			p.open = append(p.open, near, far)
			p.lock.Unlock()
			go p.carry(near, far)
			go p.carry(far, near)
		}
	}()
	return p
}

func (p *proxy) carry(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		length, err := from.Read(buffer)
		p.lock.Lock()
		stalled := p.stalled
		p.lock.Unlock()
		if err == nil && !stalled {
			_, err = to.Write(buffer[:length])
		}
		if err != nil {
			_ = from.Close()
			_ = to.Close()
			return
		}
	}
}

func (p *proxy) stall(is bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.stalled = is
	if !is {
		for _, connection := range p.open {
			_ = connection.Close()
		}
		p.open = nil
	}
}

func TestAServerThatFallsSilentIsNoticed(t *testing.T) {
	pair := start(t, anyPorts("--ephemeral")...)
	proxy := newProxy(t, pair.learning)
	node := newNode(t, NodeConfig{Connection: Connection{Address: proxy.listener.Addr().String()}})
	eventually(t, "it is connected", func() bool { return node.Status().Connected })
	proxy.stall(true)
	from := time.Now()
	eventually(t, "silence is noticed", func() bool { return node.Status().Silent })
	if after := time.Since(from); after > 30*time.Second {
		t.Fatalf("noticed after %s", after)
	}
	eventually(t, "the stream is left", func() bool { return !node.Status().Connected })
	proxy.stall(false)
	eventually(t, "it is connected again", func() bool {
		status := node.Status()
		return status.Connected && !status.Silent && status.Problem == ""
	})
}

func TestADeadFirstAddressIsPassedOver(t *testing.T) {
	pair := start(t, anyPorts("--ephemeral")...)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := dead.Addr().String()
	_ = dead.Close()
	// This one takes connections and never answers.
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	for _, first := range []string{nobody, mute.Addr().String()} {
		feedback := newFeedback(t, Connection{Address: first + "," + pair.feedback})
		teach(t, feedback, "pay", "pay_fee")
		node := newNode(t, NodeConfig{Connection: Connection{Address: first + "," + pair.learning}})
		eventually(t, "it is connected", func() bool { return node.Status().Connected })
		_ = node.Close()
	}
}

// certificates runs the commands by which docs/tls.md makes certificates.
func certificates(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/tls.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "```sh\n")
	if !found {
		t.Fatal("docs/tls.md shows no commands")
	}
	script, _, _ = strings.Cut(script, "```")
	directory := t.TempDir()
	command := exec.Command("sh", "-ec", script)
	command.Dir = directory
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return directory
}

func TestCertificatesAndTokens(t *testing.T) {
	directory := certificates(t)
	in := func(name string) string { return filepath.Join(directory, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	const relay, first, second = "relay-token-of-32-characters-0000", "first-token-of-32-characters-0000", "second-token-of-32-characters-000"
	write("relay.token", relay)
	write("token", "wrong-token-of-32-characters-0000")
	write("auth.toml", fmt.Sprintf(`
[[principals]]
name = "feedback-svc"
token_sha256 = ["%s"]
grants = [{ roles = ["ingester"], namespaces = "*" }]

[[principals]]
name = "backend"
token_sha256 = ["%s", "%s"]
grants = [{ roles = ["reporter", "subscriber"], namespaces = ["fund-admin"] }]
`, hash(relay), hash(first), hash(second)))
	pair := start(t, anyPorts(
		"--ephemeral", "--tls-cert", in("server.pem"), "--tls-key", in("server.key"), "--tls-client-ca", in("ca.pem"),
		"--auth-config", in("auth.toml"), "--learning-token-file", in("relay.token"))...)
	port := func(address string) string {
		_, port, err := net.SplitHostPort(strings.TrimPrefix(address, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		return "https://localhost:" + port
	}
	secured := &TLS{CAFile: in("ca.pem"), CertFile: in("node.pem"), KeyFile: in("node.key")}
	connection := Connection{Address: port(pair.feedback), TLS: secured, TokenFile: in("token")}
	feedback := newFeedback(t, connection)
	_, err := feedback.Submit(within30(t), Verb("pay", "pay_fee"), Details{Reporter: "joe"})
	if CodeOf(err) != codes.Unauthenticated {
		t.Fatalf("a wrong token is refused: %v", err)
	}
	stream := connection
	stream.Address = port(pair.learning)
	node := newNode(t, NodeConfig{Connection: stream, Namespaces: []string{"fund-admin"}})
	eventually(t, "the refusal is shown", func() bool {
		return strings.Contains(node.Status().Problem, "UNAUTHENTICATED")
	})
	write("token", first)
	eventually(t, "the right token is read", func() bool { return node.Status().Connected })
	write("token", second+"\n")
	revision := teach(t, feedback, "pay", "pay_fee")
	if err := node.WaitForRevision(within30(t), revision); err != nil || choice(t, node, "pay") != "pay_fee" {
		t.Fatalf("it answers: %v", err)
	}

	for name, files := range map[string]*TLS{
		"another authority":     {CAFile: in("node.pem"), CertFile: in("node.pem"), KeyFile: in("node.key")},
		"no client certificate": {CAFile: in("ca.pem")},
	} {
		wrong := connection
		wrong.TLS, wrong.Deadline = files, 3*time.Second
		_, err := newFeedback(t, wrong).Submit(t.Context(), Verb("a", "b"), Details{Reporter: "joe"})
		if code := CodeOf(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherInstallationIsTakenOnlyWhenAccepted(t *testing.T) {
	cache := t.TempDir()
	one := start(t, anyPorts("--ephemeral")...)
	teach(t, newFeedback(t, Connection{Address: one.feedback}), "pay", "pay_fee")
	config := NodeConfig{Connection: Connection{Address: one.learning}, CacheDir: cache}
	node := newNode(t, config)
	eventually(t, "it has learned", func() bool { return choice(t, node, "pay") == "pay_fee" })
	own := node.Status().Installation
	_ = node.Close()

	other := start(t, anyPorts("--ephemeral")...)
	config.Connection.Address = other.learning
	node = newNode(t, config)
	eventually(t, "the other is seen", func() bool { return node.Status().OtherInstallation != "" })
	status := node.Status()
	if status.Installation != own || choice(t, node, "pay") != "pay_fee" {
		t.Fatalf("it keeps what it holds: %+v", status)
	}
	node.AcceptInstallation(status.OtherInstallation)
	eventually(t, "the other is taken", func() bool { return node.Status().Installation == status.OtherInstallation })
	if choice(t, node, "pay") != "" {
		t.Fatal("it still answers from the first")
	}
}
