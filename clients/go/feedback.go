package emend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	accesspb "emend.dev/clients/go/gen/emend/access/v1"
	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	feedbackpb "emend.dev/clients/go/gen/emend/feedback/v1"
)

// Details say who corrects, about what, and for whom.
type Details struct {
	// Reporter is the person or agent who made the correction, at most 128 characters.
	Reporter string
	// Session, Client and ClientKey describe where it was made.
	Session, Client, ClientKey string
	// QueryID is the query that it is about; a search rating has its own.
	QueryID string
	// Reason is why, in the reporter's words, at most 2,000 characters. Decisions about domains and claims need one.
	Reason string
	// Context is anything that helps a reviewer: at most 32 entries.
	Context map[string]string
	// Own has the correction learned for the reporter alone.
	Own bool
	// Wait returns once the correction is evaluated, or after 2 s; otherwise once it is stored.
	Wait bool
	// RequestID makes the submission idempotent. Default: a random one, so that attempts of one call are stored once.
	RequestID string
}

// A Submission is a correction with its details.
type Submission struct {
	Correction Correction
	Details    Details
}

// A Result is what became of one submission of several.
type Result struct {
	// Feedback is as stored; nil if Err is set.
	Feedback *feedbackpb.Feedback
	// Err is why it was not stored.
	Err error
}

// Feedback submits corrections and reads what became of them. It may be used by many goroutines.
type Feedback struct {
	namespace  string
	deadline   time.Duration
	connection *grpc.ClientConn
	feedback   feedbackpb.FeedbackServiceClient
	queries    feedbackpb.QueryServiceClient
	settings   feedbackpb.SettingsServiceClient
	access     accesspb.AccessServiceClient
}

// NewFeedback makes a client of feedback-svc for one search application. It connects with the first call.
func NewFeedback(connection Connection, namespace string) (*Feedback, error) {
	dialled, err := connection.dial()
	if err != nil {
		return nil, err
	}
	return &Feedback{
		namespace: namespace, deadline: connection.deadline(), connection: dialled,
		feedback: feedbackpb.NewFeedbackServiceClient(dialled),
		queries:  feedbackpb.NewQueryServiceClient(dialled),
		settings: feedbackpb.NewSettingsServiceClient(dialled),
		access:   accesspb.NewAccessServiceClient(dialled),
	}, nil
}

// Close ends the connection. Calls under way fail.
func (f *Feedback) Close() error { return f.connection.Close() }

func (f *Feedback) request(correction Correction, details Details) *feedbackpb.SubmitFeedbackRequest {
	request := &feedbackpb.SubmitFeedbackRequest{
		RequestId: details.RequestID, Namespace: f.namespace, QueryId: details.QueryID, Reason: details.Reason,
		Context: details.Context, Wait: waitOf(details.Wait), Correction: correction.message,
		Reporter: &commonpb.Reporter{
			Id: details.Reporter, SessionId: details.Session, Client: details.Client, ClientKey: details.ClientKey,
		},
	}
	if correction.queryID != "" {
		request.QueryId = correction.queryID
	}
	if details.Own {
		request.Scope = commonpb.Scope_SCOPE_USER
	}
	if request.RequestId == "" {
		request.RequestId = rand.Text()
	}
	return request
}

func waitOf(evaluated bool) feedbackpb.Wait {
	if evaluated {
		return feedbackpb.Wait_WAIT_EVALUATED
	}
	return feedbackpb.Wait_WAIT_RECORDED
}

// Submit stores one correction. Without an error it is stored and will not be lost.
func (f *Feedback) Submit(ctx context.Context, correction Correction, details Details) (*feedbackpb.Feedback, error) {
	request := f.request(correction, details)
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.SubmitFeedbackResponse, error) {
			return f.feedback.SubmitFeedback(ctx, request)
		})
	return response.GetFeedback(), err
}

// Rate says how somebody found what a recorded query returned: 1 good, 0 neither, -1 not what was wanted.
func (f *Feedback) Rate(ctx context.Context, queryID string, value int, details Details) (*feedbackpb.Feedback, error) {
	return f.Submit(ctx, SearchRating(queryID, value), details)
}

// SubmitAll stores up to 100 corrections, and returns a result for each, in order. Those that fail because the server is busy
// are tried again until the deadline. With wait it returns once all are evaluated.
func (f *Feedback) SubmitAll(ctx context.Context, submissions []Submission, wait bool) ([]Result, error) {
	ctx, cancel := within(ctx, f.deadline)
	defer cancel()
	results := make([]Result, len(submissions))
	requests := make([]*feedbackpb.SubmitFeedbackRequest, len(submissions))
	left := make([]int, len(submissions))
	for place, one := range submissions {
		requests[place], left[place] = f.request(one.Correction, one.Details), place
	}
	waits := newWaits(2 * time.Second)
	for len(left) > 0 {
		batch := &feedbackpb.BatchSubmitFeedbackRequest{Wait: waitOf(wait)}
		for _, place := range left {
			batch.Requests = append(batch.Requests, requests[place])
		}
		answer, err := retried(ctx, f.deadline, noAnswerToChange,
			func(ctx context.Context) (*feedbackpb.BatchSubmitFeedbackResponse, error) {
				return f.feedback.BatchSubmitFeedback(ctx, batch)
			})
		if err == nil && len(answer.GetResults()) != len(left) {
			err = &Error{Code: codes.Internal, Message: "the server did not answer for every item"}
		}
		if err != nil && len(left) == len(submissions) {
			return nil, err
		}
		var again []int
		var wait time.Duration
		for index, place := range left {
			if err != nil {
				results[place] = Result{Err: err}
				continue
			}
			results[place] = resultOf(answer.GetResults()[index])
			if after, repeat := nextAttempt(ctx, results[place].Err, &waits); repeat {
				again, wait = append(again, place), max(wait, after)
			}
		}
		if left = again; len(left) > 0 && !pause(ctx, wait) {
			break
		}
	}
	return results, nil
}

func resultOf(result *feedbackpb.BatchSubmitFeedbackResult) Result {
	if said := result.GetStatus(); said.GetCode() != int32(codes.OK) {
		message := &statuspb.Status{Code: said.GetCode(), Message: said.GetMessage(), Details: said.GetDetails()}
		return Result{Err: ofStatus(status.FromProto(message))}
	}
	return Result{Feedback: result.GetFeedback()}
}

// Get returns one feedback with its outcome and what has become of it since.
func (f *Feedback) Get(ctx context.Context, feedbackID string) (*feedbackpb.Feedback, error) {
	request := &feedbackpb.GetFeedbackRequest{Namespace: f.namespace, FeedbackId: feedbackID}
	response, err := retried(ctx, f.deadline, noAnswer,
		func(ctx context.Context) (*feedbackpb.GetFeedbackResponse, error) {
			return f.feedback.GetFeedback(ctx, request)
		})
	return response.GetFeedback(), err
}

// List returns feedback, newest first, page by page as it is asked for. The filter's namespace is set; nil is no filter. An
// error ends it.
func (f *Feedback) List(
	ctx context.Context, filter *feedbackpb.ListFeedbackRequest,
) iter.Seq2[*feedbackpb.Feedback, error] {
	request := copied(filter)
	request.Namespace = f.namespace
	return pages(ctx, f.deadline, func(ctx context.Context, token string) ([]*feedbackpb.Feedback, string, error) {
		request.PageToken = token
		page, err := f.feedback.ListFeedback(ctx, request)
		return page.GetFeedback(), page.GetNextPageToken(), err
	})
}

// Retract takes a correction back: its vote no longer counts. Idempotent. With wait it returns once that is evaluated.
func (f *Feedback) Retract(ctx context.Context, feedbackID, reason string, wait bool) (*feedbackpb.Feedback, error) {
	request := &feedbackpb.RetractFeedbackRequest{
		Namespace: f.namespace, FeedbackId: feedbackID, Reason: reason, Wait: waitOf(wait),
	}
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RetractFeedbackResponse, error) {
			return f.feedback.RetractFeedback(ctx, request)
		})
	return response.GetFeedback(), err
}

// Labels are the changes of a search rating's labels.
type Labels struct {
	// Set and Clear are tags: 1 to 32 characters of [a-z0-9_-], beginning with a letter.
	Set, Clear []string
	// Processed says whether somebody has dealt with the rating; nil leaves it as it is.
	Processed *bool
}

// UpdateLabels sets the labels of a rating of a search answer. Idempotent.
func (f *Feedback) UpdateLabels(ctx context.Context, feedbackID string, labels Labels) (*feedbackpb.Feedback, error) {
	request := &feedbackpb.UpdateFeedbackLabelsRequest{
		Namespace: f.namespace, FeedbackId: feedbackID, SetTags: labels.Set, ClearTags: labels.Clear,
		Processed: labels.Processed,
	}
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.UpdateFeedbackLabelsResponse, error) {
			return f.feedback.UpdateFeedbackLabels(ctx, request)
		})
	return response.GetFeedback(), err
}

// Redact erases the personal parts of one feedback in both services. Idempotent.
func (f *Feedback) Redact(ctx context.Context, feedbackID string, wait bool) (*feedbackpb.Feedback, error) {
	request := &feedbackpb.RedactFeedbackRequest{Namespace: f.namespace, FeedbackId: feedbackID, Wait: waitOf(wait)}
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RedactFeedbackResponse, error) {
			return f.feedback.RedactFeedback(ctx, request)
		})
	return response.GetFeedback(), err
}

// RedactReporter erases everything about one reporter, in batches: call it again until nothing remains.
func (f *Feedback) RedactReporter(
	ctx context.Context, reporter string,
) (*feedbackpb.RedactReporterResponse, error) {
	request := &feedbackpb.RedactReporterRequest{Namespace: f.namespace, ReporterId: reporter}
	return retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RedactReporterResponse, error) {
			return f.feedback.RedactReporter(ctx, request)
		})
}

// DeadLetters returns the events that learning-svc refused for good, oldest first.
func (f *Feedback) DeadLetters(ctx context.Context) iter.Seq2[*feedbackpb.DeadLetter, error] {
	return pages(ctx, f.deadline, func(ctx context.Context, token string) ([]*feedbackpb.DeadLetter, string, error) {
		request := &feedbackpb.ListDeadLettersRequest{Namespace: f.namespace, PageToken: token}
		page, err := f.feedback.ListDeadLetters(ctx, request)
		return page.GetDeadLetters(), page.GetNextPageToken(), err
	})
}

// RedriveDeadLetters makes dead letters due for delivery again; see the message for which.
func (f *Feedback) RedriveDeadLetters(
	ctx context.Context, which *feedbackpb.RedriveDeadLettersRequest,
) (*feedbackpb.RedriveDeadLettersResponse, error) {
	return retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RedriveDeadLettersResponse, error) {
			return f.feedback.RedriveDeadLetters(ctx, which)
		})
}

// Settings returns the settings of the search application.
func (f *Feedback) Settings(ctx context.Context) (*feedbackpb.Settings, error) {
	request := &feedbackpb.GetSettingsRequest{Namespace: f.namespace}
	response, err := retried(ctx, f.deadline, noAnswer,
		func(ctx context.Context) (*feedbackpb.GetSettingsResponse, error) {
			return f.settings.GetSettings(ctx, request)
		})
	return response.GetSettings(), err
}

// RecordQueries says what was searched, so that ratings have their context. Returns how many the server dropped because its
// queue was full.
func (f *Feedback) RecordQueries(ctx context.Context, queries ...*feedbackpb.Query) (dropped int, err error) {
	request := &feedbackpb.RecordQueryRequest{Namespace: f.namespace, Queries: queries}
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RecordQueryResponse, error) {
			return f.queries.RecordQuery(ctx, request)
		})
	return int(response.GetDroppedCount()), err
}

// RecordInteractions says what people did with results. Returns how many the server dropped because its queue was full.
func (f *Feedback) RecordInteractions(
	ctx context.Context, interactions ...*feedbackpb.QueryInteraction,
) (dropped int, err error) {
	request := &feedbackpb.RecordInteractionRequest{Namespace: f.namespace, Interactions: interactions}
	response, err := retried(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.RecordInteractionResponse, error) {
			return f.queries.RecordInteraction(ctx, request)
		})
	return int(response.GetDroppedCount()), err
}

// Queries returns recorded queries, newest first. The filter's namespace is set; nil is no filter.
func (f *Feedback) Queries(
	ctx context.Context, filter *feedbackpb.ListQueriesRequest,
) iter.Seq2[*feedbackpb.Query, error] {
	request := copied(filter)
	request.Namespace = f.namespace
	return pages(ctx, f.deadline, func(ctx context.Context, token string) ([]*feedbackpb.Query, string, error) {
		request.PageToken = token
		page, err := f.queries.ListQueries(ctx, request)
		return page.GetQueries(), page.GetNextPageToken(), err
	})
}

// Stats counts ratings, by week, query type and version. The question's namespace is set; nil asks for everything.
func (f *Feedback) Stats(
	ctx context.Context, question *feedbackpb.GetFeedbackStatsRequest,
) (*feedbackpb.GetFeedbackStatsResponse, error) {
	request := copied(question)
	request.Namespace = f.namespace
	return retried(ctx, f.deadline, noAnswer,
		func(ctx context.Context) (*feedbackpb.GetFeedbackStatsResponse, error) {
			return f.queries.GetFeedbackStats(ctx, request)
		})
}

// NegativeTerms returns the words of queries whose answers were rated down. The question's namespace is set.
func (f *Feedback) NegativeTerms(
	ctx context.Context, question *feedbackpb.ListNegativeTermsRequest,
) (*feedbackpb.ListNegativeTermsResponse, error) {
	request := copied(question)
	request.Namespace = f.namespace
	return retried(ctx, f.deadline, noAnswer,
		func(ctx context.Context) (*feedbackpb.ListNegativeTermsResponse, error) {
			return f.queries.ListNegativeTerms(ctx, request)
		})
}

// Export writes ratings of search answers. It has no deadline but its context's, and is not tried again: what was written
// stays. The question's namespace is set.
func (f *Feedback) Export(ctx context.Context, question *feedbackpb.ExportFeedbackRequest, to io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request := copied(question)
	request.Namespace = f.namespace
	stream, err := f.queries.ExportFeedback(ctx, request)
	if err != nil {
		return explained(err, noAnswer)
	}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return explained(err, noAnswer)
		}
		if _, err := io.WriteString(to, part.GetText()); err != nil {
			return fmt.Errorf("the export cannot be written: %w", err)
		}
	}
}
