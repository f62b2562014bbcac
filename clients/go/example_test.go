package emend_test

import (
	"context"
	"fmt"
	"log"
	"time"

	emend "emend.dev/clients/go"
)

// A node answers what was learned before the backend's own search.
func ExampleNode_Resolve() {
	node, err := emend.NewNode(emend.NodeConfig{
		Connection: emend.Connection{Address: "learning-1:7402,learning-2:7402", TokenFile: "/var/run/emend/token"},
		ID:         "search-1", Namespaces: []string{"fund-admin"}, CacheDir: "/var/cache/emend",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = node.Close() }()
	hit, err := node.Resolve(emend.Question{
		Namespace: "fund-admin", Phrase: "set up a CSA",
		Candidates: []emend.Candidate{{Choice: "create_csa", Score: 0.71}, {Choice: "create_isda", Score: 0.69}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hit.Choice, hit.Prohibited, hit.FeedbackHint)
}

// A correction is stored when Submit returns, and evaluated if it waits.
func ExampleFeedback_Submit() {
	feedback, err := emend.NewFeedback(emend.Connection{Address: "feedback:7401"}, "fund-admin")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = feedback.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	correction := emend.Verb("set up a CSA", "create_isda").InsteadOf("create_csa")
	stored, err := feedback.Submit(ctx, correction, emend.Details{Reporter: "jane", Wait: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(stored.GetOutcome().GetMessage())
}
