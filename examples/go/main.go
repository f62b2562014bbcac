// A search node in Go: answers with what was learned first, then from its own search, and submits users' corrections.
//
// It reads commands from standard input and answers each with one line of JSON: search PHRASE, correct REPORTER PHRASE = VERB,
// status. See docs/integration/go.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	emend "emend.dev/clients/go"
)

// The node's own search, which learning complements: the verb that shares the most words with the query.
var verbs = map[string]string{
	"create_csa": "set up create credit support annex csa", "create_isda": "create isda master agreement",
	"book_trade": "book enter trade deal", "open_nav_report": "open show nav report fund value",
}

func ownSearch(phrase string, prohibited []string) (best string) {
	most := 0
	for verb, text := range verbs {
		shared := 0
		for _, word := range strings.Fields(emend.Normalise(phrase)) {
			if slices.Contains(strings.Fields(text), word) {
				shared++
			}
		}
		if !slices.Contains(prohibited, verb) && (shared > most || shared == most && shared > 0 && verb < best) {
			best, most = verb, shared
		}
	}
	return best
}

// [search]
// Learned answers come first; a prohibited choice is never returned.
func search(node *emend.Node, namespace, phrase string) (map[string]any, error) {
	learned, err := node.Resolve(emend.Question{Namespace: namespace, Phrase: phrase})
	if err != nil {
		return nil, err
	}
	if learned.Found() {
		return map[string]any{"verb": learned.Choice, "learned": true, "revision": learned.Revision}, nil
	}
	own := ownSearch(phrase, learned.Prohibited)
	return map[string]any{"verb": own, "learned": false, "prohibited": learned.Prohibited}, nil
}

// [/search]

// [correct]
// A user says what is right. Safe to repeat: the client gives each submission a request id.
func correct(feedback *emend.Feedback, reporter, phrase, chosen, right string) (map[string]any, error) {
	correction := emend.Verb(phrase, right)
	if chosen != right {
		correction = correction.InsteadOf(chosen)
	}
	stored, err := feedback.Submit(context.Background(), correction, emend.Details{Reporter: reporter, Wait: true})
	outcome := stored.GetOutcome()
	state := strings.TrimPrefix(outcome.GetState().String(), "OUTCOME_STATE_")
	return map[string]any{"state": state, "confirmations_needed": outcome.GetConfirmationsNeeded()}, err
}

// [/correct]

func main() {
	feedbackAddress := flag.String("feedback", "127.0.0.1:7401", "where feedback-svc is")
	learningAddress := flag.String("learning", "127.0.0.1:7402", "where learning-svc is")
	namespace := flag.String("namespace", "fund-admin", "the search application")
	id := flag.String("node", "search-1", "this node's id")
	state := flag.String("state", "", "the directory of a copy of what was learned")
	accept := flag.String("accept-installation", "", "id of an installation to accept instead")
	bookmarks := flag.Int("bookmark-seconds", 10, "how often to be told that nothing is missing")
	flag.Parse()

	if *state != "" {
		if err := os.MkdirAll(*state, 0o700); err != nil {
			log.Fatal(err)
		}
	}
	// [start]
	feedback, err := emend.NewFeedback(emend.Connection{Address: *feedbackAddress}, *namespace)
	if err != nil {
		log.Fatal(err)
	}
	node, err := emend.NewNode(emend.NodeConfig{
		Connection: emend.Connection{Address: *learningAddress}, ID: *id, Namespaces: []string{*namespace},
		CacheDir: *state, CacheInterval: time.Second, AcceptInstallation: *accept,
		BookmarkInterval: time.Duration(*bookmarks) * time.Second,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	// A node that is up to date answers best, but one that is not still answers.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	_ = node.WaitReady(ctx)
	cancel()
	// [/start]

	commands, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for commands.Scan() {
		command, rest, _ := strings.Cut(strings.TrimSpace(commands.Text()), " ")
		var answer any
		switch command {
		case "search":
			answer, err = search(node, *namespace, rest)
		case "correct":
			reporter, said, _ := strings.Cut(rest, " ")
			phrase, right, _ := strings.Cut(said, " = ")
			found, _ := search(node, *namespace, phrase)
			chosen, _ := found["verb"].(string)
			answer, err = correct(feedback, reporter, phrase, chosen, right)
		case "status":
			status := node.Status()
			answer, err = map[string]any{"saved": status.SavedRevision, "other_installation": status.OtherInstallation}, nil
		default:
			answer, err = map[string]any{"error": "unknown command " + command}, nil
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		if err := answers.Encode(answer); err != nil {
			break
		}
	}
}
