// A backend's first program with Emend: docs/integration/go.md explains it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	emend "emend.dev/clients/go"
)

func main() {
	ctx := context.Background()
	node, err := emend.NewNode(emend.NodeConfig{
		Connection: emend.Connection{Address: os.Args[2]}, ID: "search-1", Namespaces: []string{"fund-admin"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()
	feedback, err := emend.NewFeedback(emend.Connection{Address: os.Args[1]}, "fund-admin")
	if err != nil {
		log.Fatal(err)
	}
	defer feedback.Close()

	// Three people say what is right.
	correction := emend.Verb("set up a CSA", "create_isda").InsteadOf("create_csa")
	for _, person := range []string{"jane", "ana", "mia"} {
		said, err := feedback.Submit(ctx, correction, emend.Details{Reporter: person, Wait: true})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(said.GetOutcome().GetMessage())
		if err := node.WaitForRevision(ctx, said.GetOutcome().GetRevision()); err != nil {
			log.Fatal(err)
		}
	}
	// For every query, ask what was learned before your own search decides.
	hit, err := node.Resolve(emend.Question{Namespace: "fund-admin", Phrase: "SET UP  a csa"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(hit.Choice)
}
