package emend

import (
	"math"
	"slices"

	"golang.org/x/text/unicode/norm"
	"google.golang.org/protobuf/proto"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
)

// LearnedScore is the score of every learned answer.
const LearnedScore = 1.0

// confidentScore is the score from which on a backend need not ask its user.
const confidentScore = 0.9

// A Candidate is what a backend would answer by itself.
type Candidate struct {
	// Choice is a verb or an entity id.
	Choice string
	// Score is from 0.0 to 1.0.
	Score float64
}

// A Question is what a node is asked.
type Question struct {
	// Namespace is the search application.
	Namespace string
	// Phrase is what the user said, in any spelling: 1 to 512 characters.
	Phrase string
	// Kind is that of the answer. Default: INVOCATION_PHRASE.
	Kind commonpb.ResourceKind
	// User prefers this user's own answer, where the node has what is users' own.
	User string
	// Candidates are what the backend would answer, for the hint.
	Candidates []Candidate
}

// An Answer is what was learned for a phrase; the same as the server's Resolve.
type Answer struct {
	// Choice is the learned verb or entity id; empty if nothing was learned or it is prohibited.
	Choice string
	// Score is [LearnedScore] with a choice, else 0.
	Score float64
	// Own says that the choice is the user's own rather than everybody's.
	Own bool
	// Revision is the one that applied the choice.
	Revision int64
	// ChoiceProhibited says that a choice was learned but is prohibited.
	ChoiceProhibited bool
	// Prohibited are the choices to remove from the backend's own, sorted.
	Prohibited []string
	// FeedbackHint says to ask the user: nothing was learned, and of the candidates that are not prohibited there is more than
	// one and the best scores below 0.9.
	FeedbackHint bool
	// Phrase is the phrase in normal form.
	Phrase string
	// StateRevision is that of the state that answered.
	StateRevision int64
}

// Found says whether there is a choice.
func (a Answer) Found() bool { return a.Choice != "" }

// IsProhibited says whether a choice must not be offered for the phrase.
func (a Answer) IsProhibited(choice string) bool {
	_, is := slices.BinarySearch(a.Prohibited, norm.NFC.String(choice))
	return is
}

// Resolve answers from memory: the user's own choice first, then everybody's, never a prohibited one. It fails only for a phrase
// that is none.
func (n *Node) Resolve(question Question) (Answer, error) {
	phrase, err := key(question.Phrase)
	if err != nil {
		return Answer{}, err
	}
	n.lock.RLock()
	defer n.lock.RUnlock()
	answer := n.replica.held.resolve(question, phrase)
	answer.StateRevision = n.replica.revision()
	return answer, nil
}

func (h *holdings) resolve(question Question, phrase string) Answer {
	kind := question.Kind
	if kind == commonpb.ResourceKind_RESOURCE_KIND_UNSPECIFIED {
		kind = commonpb.ResourceKind_RESOURCE_KIND_INVOCATION_PHRASE
	}
	answer := Answer{Phrase: phrase}
	owners := []string{""}
	if question.User != "" {
		owners = []string{question.User, ""}
	}
	for _, owner := range owners {
		answer.Prohibited = append(answer.Prohibited, h.prohibited[phraseKey{question.Namespace, phrase, owner}]...)
	}
	slices.Sort(answer.Prohibited)
	answer.Prohibited = slices.Compact(answer.Prohibited)
	for _, owner := range owners {
		found := h.resources[identity{question.Namespace, int32(kind), phrase, "", owner}]
		if found.answer == "" {
			continue
		}
		if _, is := slices.BinarySearch(answer.Prohibited, found.answer); is {
			answer.ChoiceProhibited = true
			continue
		}
		answer.Choice, answer.Score, answer.Revision = found.answer, LearnedScore, found.revision
		answer.Own = owner != ""
		break
	}
	left, best := 0, math.Inf(-1)
	for _, candidate := range question.Candidates {
		if !answer.IsProhibited(candidate.Choice) {
			left, best = left+1, math.Max(best, candidate.Score)
		}
	}
	answer.FeedbackHint = !answer.Found() && left > 1 && best < confidentScore
	return answer
}

// Value returns what is learned for one key, of any kind, and the revision that applied it; nil if nothing is that this node
// can use. The key is that of the resource, in the form of its kind: of phrases what [Normalise] returns.
func (n *Node) Value(key *commonpb.ResourceKey) (*commonpb.ResourceValue, int64) {
	id := identityOf(key)
	n.lock.RLock()
	held, has := n.replica.held.resources[id]
	_, rejected := n.replica.held.rejected[id]
	n.lock.RUnlock()
	if !has || rejected {
		return nil, 0
	}
	value := &commonpb.ResourceValue{}
	if err := proto.Unmarshal(held.value, value); err != nil {
		return nil, 0
	}
	if value.Display == "" {
		value.Display = id.key
	}
	return value, held.revision
}
