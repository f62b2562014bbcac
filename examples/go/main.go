// A search node in Go: answers with what was learned first, then from its own search, and submits users' corrections.
//
// It reads commands from standard input and answers each with one line of JSON:
//
//	search PHRASE                       what the node answers
//	correct REPORTER PHRASE = VERB      a user says what is right
//	status                              what the node holds
//
// See docs/integration/go.md. It needs, in gen, the code that buf generates from the protos.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	feedbackpb "emend.example/search-node/gen/emend/feedback/v1"
)

// The node's own search, which learning complements: the verb that shares the most words with the query.
var verbs = map[string]string{
	"create_csa":      "set up create credit support annex csa",
	"create_isda":     "create isda master agreement",
	"book_trade":      "book enter trade deal",
	"open_nav_report": "open show nav report fund value",
}

func ownSearch(phrase string, prohibited map[string]bool) string {
	best, most := "", 0
	for verb, text := range verbs {
		words := map[string]bool{}
		for _, word := range strings.Fields(text) {
			words[word] = true
		}
		shared := 0
		for _, word := range strings.Fields(normalise(phrase)) {
			if words[word] {
				shared++
			}
		}
		if !prohibited[verb] && (shared > most || shared == most && shared > 0 && verb < best) {
			best, most = verb, shared
		}
	}
	return best
}

// [search]
// Learned answers come first; a prohibited choice is never returned.
func search(node *Node, phrase string) map[string]any {
	verb, revision, prohibited := node.Resolve(phrase, "")
	if verb != "" {
		return map[string]any{"verb": verb, "learned": true, "revision": revision}
	}
	names := make([]string, 0, len(prohibited))
	for name := range prohibited {
		names = append(names, name)
	}
	sort.Strings(names)
	return map[string]any{"verb": ownSearch(phrase, prohibited), "learned": false, "prohibited": names}
}

// [/search]

func dial(address string) *grpc.ClientConn {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	return connection
}

func main() {
	feedbackAddress := flag.String("feedback", "127.0.0.1:7401", "where feedback-svc is")
	learningAddress := flag.String("learning", "127.0.0.1:7402", "where learning-svc is")
	namespace := flag.String("namespace", "fund-admin", "the search application")
	id := flag.String("node", "search-1", "this node's id")
	state := flag.String("state", "", "where to keep a copy of what was learned")
	accept := flag.String("accept-installation", "", "id of an installation to accept instead")
	bookmarkSeconds := flag.Int64("bookmark-seconds", 30, "how often to be told that nothing is missing")
	flag.Parse()

	feedback := feedbackpb.NewFeedbackServiceClient(dial(*feedbackAddress))
	node, err := NewNode(dial(*learningAddress), *id, *namespace, *state, *accept, *bookmarkSeconds)
	if err != nil {
		log.Fatal(err)
	}
	go node.Run(context.Background())
	// A node that is up to date answers best, but one that is not still answers.
	node.WaitUntilCurrent()

	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		command, rest, _ := strings.Cut(strings.TrimSpace(commands.Text()), " ")
		var answer map[string]any
		switch command {
		case "search":
			answer = search(node, rest)
		case "correct":
			reporter, correction, _ := strings.Cut(rest, " ")
			phrase, right, _ := strings.Cut(correction, " = ")
			chosen, _ := search(node, phrase)["verb"].(string)
			outcome, err := Submit(feedback, *namespace, reporter, phrase, chosen, right)
			if err != nil {
				answer = map[string]any{"error": err.Error()}
				break
			}
			answer = map[string]any{
				"state":                strings.TrimPrefix(outcome.GetState().String(), "OUTCOME_STATE_"),
				"confirmations_needed": outcome.GetConfirmationsNeeded(),
			}
		case "status":
			answer = node.Status()
		default:
			answer = map[string]any{"error": "unknown command " + command}
		}
		line, err := json.Marshal(answer)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(line))
	}
}
