package main

import (
	"context"
	"crypto/rand"
	"math/big"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	commonpb "emend.example/search-node/gen/emend/common/v1"
	feedbackpb "emend.example/search-node/gen/emend/feedback/v1"
)

// [submit]
// Submit stores a correction and returns its outcome. Safe to repeat, because of the request id.
func Submit(
	feedback feedbackpb.FeedbackServiceClient, namespace, reporter, phrase, chosen, right string,
) (*commonpb.Outcome, error) {
	if chosen == right {
		chosen = ""
	}
	request := &feedbackpb.SubmitFeedbackRequest{
		RequestId: rand.Text(),
		Namespace: namespace,
		Reporter:  &commonpb.Reporter{Id: reporter, Client: "search-node-go/1.0"},
		Wait:      feedbackpb.Wait_WAIT_EVALUATED,
		Correction: &commonpb.Correction{Correction: &commonpb.Correction_Verb{Verb: &commonpb.VerbCorrection{
			OriginalInput: phrase,
			SystemChoice:  chosen,
			CorrectChoice: right,
		}}},
	}
	within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		response, err := feedback.SubmitFeedback(within, request)
		if err == nil {
			return response.GetFeedback().GetOutcome(), nil
		}
		code := status.Code(err)
		if code != codes.Unavailable && code != codes.ResourceExhausted {
			return nil, err
		}
		select {
		case <-time.After(jitter(time.Second)):
		case <-within.Done():
			return nil, err
		}
	}
}

// [/submit]

// A random duration up to most, so that not all clients return at once.
func jitter(most time.Duration) time.Duration {
	part, err := rand.Int(rand.Reader, big.NewInt(int64(most)))
	if err != nil {
		return most
	}
	return time.Duration(part.Int64())
}
