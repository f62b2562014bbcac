package emend

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

type object = map[string]any

// A vector is a line of a file in conformance.
type vector struct {
	ID, Checks    string
	Input, Answer object
}

// The groups that this client claims. Near answers, expansion and prompts are given by the edge.
var groups = map[string]func(*testing.T, object, map[string]object) object{
	"normalisation": normalisationAnswer,
	"digests":       digestAnswer,
	"stream": func(t *testing.T, input object, _ map[string]object) object {
		_, answer := follow(t, input)
		return answer
	},
	"reports": reportAnswer,
	"lookups": lookupAnswer,
	"errors":  errorAnswer,
}

// vectors reads a group; one that is missing or empty is an error.
func vectors(directory, group string) ([]vector, error) {
	text, err := os.ReadFile(filepath.Join(directory, group+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("group %s is missing: %w", group, err)
	}
	var lines []vector
	for number, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		var read vector
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			return nil, fmt.Errorf("group %s is empty, or line %d is none: %w", group, number+1, err)
		}
		lines = append(lines, read)
	}
	return lines, nil
}

const conformance = "../../conformance"

// read reads a group, and the inputs of stream, to which others refer.
func read(t *testing.T, group string) (lines []vector, states map[string]object) {
	t.Helper()
	lines, err := vectors(conformance, group)
	streams, other := vectors(conformance, "stream")
	if err = errors.Join(err, other); err != nil {
		t.Fatal(err)
	}
	states = map[string]object{}
	for _, line := range streams {
		states[line.ID] = line.Input
	}
	return lines, states
}

// wrong says what is wrong with the lines of a group, by their ids.
func wrong(t *testing.T, group string, lines []vector, states map[string]object) (wrong []string) {
	t.Helper()
	for _, line := range lines {
		if answer := plain(t, groups[group](t, line.Input, states)); !reflect.DeepEqual(answer, line.Answer) {
			wrong = append(wrong, fmt.Sprintf("%s/%s: %s:\n  %v\n  is not %v", group, line.ID, line.Checks, answer, line.Answer))
		}
	}
	return wrong
}

func TestThisClientConformsToTheGroupsItClaims(t *testing.T) {
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		lines, states := read(t, group)
		for _, one := range wrong(t, group, lines, states) {
			t.Error(one)
		}
	}
}

func TestTheRunnerNamesTheLineWhoseAnswerIsChanged(t *testing.T) {
	for group := range groups {
		lines, states := read(t, group)
		line := lines[len(lines)/2]
		line.Answer = spoilt(line.Answer).(object)
		told := wrong(t, group, []vector{line}, states)
		if len(told) != 1 || !strings.HasPrefix(told[0], group+"/"+line.ID+": ") {
			t.Errorf("%s: it says %v", group, told)
		}
	}
	empty := t.TempDir()
	if _, err := vectors(empty, "digests"); err == nil {
		t.Error("a group that is missing is no error")
	}
	if err := os.WriteFile(filepath.Join(empty, "digests.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vectors(empty, "digests"); err == nil {
		t.Error("a group that is empty is no error")
	}
}

// spoilt is an answer of which the first part is another.
func spoilt(answer any) any {
	switch answer := answer.(type) {
	case object:
		changed := maps.Clone(answer)
		name := slices.Min(slices.Collect(maps.Keys(answer)))
		changed[name] = spoilt(answer[name])
		return changed
	case string:
		return answer + "x"
	default:
		return "spoilt"
	}
}

// plain is an answer as it would be read from a file.
func plain(t *testing.T, answer object) object {
	t.Helper()
	encoded, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var read object
	if err := json.Unmarshal(encoded, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func text(from object, name string) string {
	text, _ := from[name].(string)
	return text
}

func list(from object, name string) []any {
	list, _ := from[name].([]any)
	return list
}

func hexOf(number uint64) string {
	digits := strconv.FormatUint(number, 16)
	return strings.Repeat("0", 16-len(digits)) + digits
}

func normalisationAnswer(_ *testing.T, input object, _ map[string]object) object {
	span := list(input, "characters")
	if span == nil {
		return object{"key": Normalise(text(input, "text"))}
	}
	var joined []string
	for r := rune(span[0].(float64)); r <= rune(span[1].(float64)); r++ {
		if r < 0xD800 || r > 0xDFFF {
			joined = append(joined, Normalise("a"+string(r)+"b"))
		}
	}
	return object{"xxh3": hexOf(xxh3.HashString(strings.Join(joined, "\n")))}
}

func digestAnswer(t *testing.T, input object, _ map[string]object) object {
	sum, items := digest{}, []any{}
	for _, one := range list(input, "items") {
		item := one.(object)
		checksum, err := strconv.ParseUint(text(item, "value_checksum"), 16, 64)
		if encoded, has := item["value_bytes"]; has {
			var value []byte
			value, err = hex.DecodeString(encoded.(string))
			checksum = xxh3.Hash(value)
		}
		revision, wrong := strconv.ParseInt(text(item, "revision"), 10, 64)
		if err = errors.Join(err, wrong); err != nil {
			t.Fatal(err)
		}
		id := identity{
			text(item, "namespace"), int32(item["kind"].(float64)), text(item, "key"), text(item, "qualifier"),
			text(item, "user_id"),
		}
		hash := itemHash(id, revision, checksum)
		sum = sum.plus(hash)
		if alone := (digest{}).plus(hash).minus(hash); alone != (digest{}) {
			t.Error("what is added and taken away leaves something")
		}
		items = append(items, object{
			"value_checksum": hexOf(checksum), "hash": digest{}.plus(hash).hex(),
			"hashed_bytes": hex.EncodeToString(hashedBytes(id, revision, checksum)),
		})
	}
	return object{"items": items, "count": sum.count, "hash": sum.hex()}
}

func cursorObject(cursor *learningpb.Cursor) any {
	if cursor == nil {
		return nil
	}
	return object{
		"epoch": cursor.GetEpoch(), "revision": cursor.GetRevision(), "filter_hash": hexOf(cursor.GetFilterHash()),
	}
}

func keyObject(id identity) object {
	return object{
		"namespace": id.namespace, "kind": id.kind, "key": id.key, "qualifier": id.qualifier, "user_id": id.user,
	}
}

// follow feeds streams, one after the other, to a new replica.
func follow(t *testing.T, input object) (*replica, object) {
	t.Helper()
	replica, streams := newReplica(), []any{}
	for _, one := range list(input, "streams") {
		stream := one.(object)
		if accept := text(stream, "accept"); accept != "" {
			replica.accepted = accept
		}
		sent, taken := replica.open(), 0
		var ended any
		for _, message := range list(stream, "messages") {
			encoded, err := base64.StdEncoding.DecodeString(message.(string))
			if err != nil {
				t.Fatal(err)
			}
			taken++
			if _, err = replica.receive(encoded, func(change func()) { change() }); err != nil {
				ended = problemOf(err)
				if errors.Is(err, errDrain) {
					ended = "DRAIN"
				}
				break
			}
		}
		streams = append(streams, object{"cursor": cursorObject(sent), "taken": taken, "ended": ended})
	}
	resources, digests := []any{}, []any{}
	for _, id := range slices.SortedFunc(maps.Keys(replica.held.resources), identity.compare) {
		held := replica.held.resources[id]
		resource := keyObject(id)
		resource["revision"], resource["value_checksum"] = held.revision, hexOf(held.checksum)
		resource["usable"] = replica.held.rejected[id] == ""
		resources = append(resources, resource)
	}
	for _, of := range slices.SortedFunc(maps.Keys(replica.held.digests), compareGroups) {
		if own := replica.held.digests[of]; own.count != 0 {
			digests = append(digests, object{
				"namespace": of.namespace, "kind": of.kind, "user_scoped": of.userScoped, "count": own.count,
				"hash": own.hex(),
			})
		}
	}
	var installation any
	if replica.installation != "" {
		installation = replica.installation
	}
	return replica, object{
		"streams": streams, "position": cursorObject(replica.position), "next_cursor": cursorObject(replica.open()),
		"installation": installation, "resources": resources, "digests": digests,
	}
}

func compareGroups(one, other group) int {
	user := func(of group) string {
		if of.userScoped {
			return "u"
		}
		return ""
	}
	return identity{one.namespace, one.kind, "", "", user(one)}.compare(
		identity{other.namespace, other.kind, "", "", user(other)})
}

func reportAnswer(t *testing.T, input object, states map[string]object) object {
	replica, _ := follow(t, states[text(input, "state")])
	counted := &delays{}
	for _, delay := range list(input, "delays_ms") {
		counted.add(time.Duration(delay.(float64)) * time.Millisecond)
	}
	report := replica.report(text(input, "node_id"), counted, "")
	if report == nil {
		return object{"report": nil}
	}
	rejected := []any{}
	for _, one := range report.GetRejected() {
		rejected = append(rejected, object{
			"key": keyObject(identityOf(one.GetKey())), "revision": one.GetRevision(), "error": one.GetError(),
		})
	}
	delays := report.GetDelays()
	return object{"report": object{
		"node_id": report.GetNodeId(), "applied": cursorObject(report.GetApplied()), "rejected": rejected,
		"rejected_count": report.GetRejectedCount(),
		"delays": object{
			"bounds_ms": delays.GetBoundsMs(), "counts": delays.GetCounts(), "sum_ms": delays.GetSumMs(),
		},
	}}
}

// nodeOf is a node that has followed the streams of a state, and follows no more.
func nodeOf(t *testing.T, input object, states map[string]object) *Node {
	t.Helper()
	replica, _ := follow(t, states[text(input, "state")])
	return &Node{replica: replica}
}

func lookupAnswer(t *testing.T, input object, states map[string]object) object {
	question := Question{
		Namespace: text(input, "namespace"), Phrase: text(input, "phrase"), User: text(input, "user"),
		Kind: commonpb.ResourceKind(input["kind"].(float64)),
	}
	for _, one := range list(input, "candidates") {
		pair := one.([]any)
		question.Candidates = append(question.Candidates, Candidate{pair[0].(string), pair[1].(float64)})
	}
	answer, err := nodeOf(t, input, states).Resolve(question)
	if err != nil {
		t.Fatal(err)
	}
	var found any
	if answer.Found() {
		scope := "GLOBAL"
		if answer.Own {
			scope = "USER"
		}
		found = object{"value": answer.Choice, "score": answer.Score, "revision": answer.Revision, "scope": scope}
	}
	return object{
		"found": found, "found_prohibited": answer.ChoiceProhibited, "feedback_hint": answer.FeedbackHint,
		"prohibited": append([]string{}, answer.Prohibited...), "phrase": answer.Phrase, "revision": answer.StateRevision,
	}
}

func errorAnswer(t *testing.T, input object, states map[string]object) object {
	if phrase, is := input["phrase"].(string); is {
		_, err := nodeOf(t, input, states).Resolve(Question{Namespace: text(input, "namespace"), Phrase: phrase})
		var known *Error
		if !errors.As(err, &known) {
			t.Fatalf("it was not refused: %v", err)
		}
		return object{"code": codeName(known.Code), "violations": violationObjects(known)}
	}
	said := &statuspb.Status{}
	encoded, err := base64.StdEncoding.DecodeString(text(input, "details"))
	if err != nil {
		t.Fatal(err)
	}
	if proto.Unmarshal(encoded, said) != nil {
		said = &statuspb.Status{}
	}
	said.Code, said.Message = int32(input["code"].(float64)), text(input, "message")
	var known *Error
	if !errors.As(explained(status.FromProto(said).Err(), noAnswer), &known) || known.Code == codes.OK {
		t.Fatal("it is no error")
	}
	preconditions := []any{}
	for _, one := range known.Preconditions {
		preconditions = append(preconditions, object{
			"type": one.Type, "subject": one.Subject, "description": one.Description,
		})
	}
	answer := object{
		"code": codeName(known.Code), "reason": nil, "message": known.Message, "violations": violationObjects(known),
		"preconditions": preconditions, "retry_after_ms": nil, "request_id": nil,
	}
	if known.Reason != "" {
		answer["reason"] = known.Reason
	}
	if known.RetryAfter > 0 {
		answer["retry_after_ms"] = known.RetryAfter.Milliseconds()
	}
	if known.RequestID != "" {
		answer["request_id"] = known.RequestID
	}
	return answer
}

func violationObjects(known *Error) []any {
	violations := []any{}
	for _, one := range known.Violations {
		violations = append(violations, object{"field": one.Field, "description": one.Description})
	}
	return violations
}
