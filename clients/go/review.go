package emend

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	accesspb "emend.dev/clients/go/gen/emend/access/v1"
	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// Review is what a reviewer's program needs of learning-svc: the queue, decisions, resources, policies and the log. It may be used by many
// goroutines.
//
// Reads are tried again while the server is away. Decisions are not: they have no request id, so repeat one after you have read
// the candidate again; its etag keeps it from being decided twice.
type Review struct {
	namespace  string
	reviewer   string
	deadline   time.Duration
	connection *grpc.ClientConn
	candidates learningpb.CandidateServiceClient
	resources  learningpb.ResourceServiceClient
	policies   learningpb.PolicyServiceClient
	outputs    learningpb.OutputServiceClient
	profiles   learningpb.ProfileServiceClient
	nodes      learningpb.SubscriptionServiceClient
	access     accesspb.AccessServiceClient
}

// NewReview makes a client of learning-svc for one search application. The reviewer is the person on whose behalf it decides, at
// most 128 characters; it may be empty. It connects with the first call.
func NewReview(connection Connection, namespace, reviewer string) (*Review, error) {
	dialled, err := connection.dial()
	if err != nil {
		return nil, err
	}
	return &Review{
		namespace: namespace, reviewer: reviewer, deadline: connection.deadline(), connection: dialled,
		candidates: learningpb.NewCandidateServiceClient(dialled),
		resources:  learningpb.NewResourceServiceClient(dialled),
		policies:   learningpb.NewPolicyServiceClient(dialled),
		outputs:    learningpb.NewOutputServiceClient(dialled),
		profiles:   learningpb.NewProfileServiceClient(dialled),
		nodes:      learningpb.NewSubscriptionServiceClient(dialled),
		access:     accesspb.NewAccessServiceClient(dialled),
	}, nil
}

// Close ends the connection. Calls under way fail.
func (r *Review) Close() error { return r.connection.Close() }

// List returns candidates, page by page as they are asked for. The filter's namespace is set; nil is no filter. An error ends it.
func (r *Review) List(
	ctx context.Context, filter *learningpb.ListCandidatesRequest,
) iter.Seq2[*learningpb.Candidate, error] {
	request := copied(filter)
	request.Namespace = r.namespace
	return pages(ctx, r.deadline, func(ctx context.Context, token string) ([]*learningpb.Candidate, string, error) {
		request.PageToken = token
		page, err := r.candidates.ListCandidates(ctx, request)
		return page.GetCandidates(), page.GetNextPageToken(), err
	})
}

// Queue returns what awaits review.
func (r *Review) Queue(ctx context.Context) iter.Seq2[*learningpb.Candidate, error] {
	return r.List(ctx, &learningpb.ListCandidatesRequest{
		Statuses: []learningpb.CandidateStatus{learningpb.CandidateStatus_CANDIDATE_STATUS_AWAITING_REVIEW},
	})
}

// Explain returns a candidate with its votes, rivals, feedback and history: why it is as it is.
func (r *Review) Explain(ctx context.Context, candidateID string) (*learningpb.GetCandidateResponse, error) {
	request := &learningpb.GetCandidateRequest{Namespace: r.namespace, CandidateId: candidateID}
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.GetCandidateResponse, error) {
			return r.candidates.GetCandidate(ctx, request)
		})
}

// An Approval is more about one.
type Approval struct {
	// Reason is why, at most 2,000 characters.
	Reason string
	// Edited takes the place of the candidate's value.
	Edited *commonpb.ResourceValue
	// AcceptRedacted approves what was made of ratings that were redacted since.
	AcceptRedacted bool
}

// A Decision is what became of a candidate.
type Decision struct {
	// Candidate is as it is now.
	Candidate *learningpb.Candidate
	// Revision is the one that was written; 0 if none was.
	Revision int64
	// Err is why a candidate of several was not decided; nil otherwise.
	Err error
}

func (r *Review) approval(candidate *learningpb.Candidate, more Approval) *learningpb.ApproveCandidateRequest {
	return &learningpb.ApproveCandidateRequest{
		Namespace: r.namespace, CandidateId: candidate.GetCandidateId(), Etag: candidate.GetEtag(), Reason: more.Reason,
		EditedValue: more.Edited, OnBehalfOf: r.reviewer, AcceptRedacted: more.AcceptRedacted,
	}
}

func (r *Review) rejection(candidate *learningpb.Candidate, reason string) *learningpb.RejectCandidateRequest {
	return &learningpb.RejectCandidateRequest{
		Namespace: r.namespace, CandidateId: candidate.GetCandidateId(), Etag: candidate.GetEtag(), Reason: reason,
		OnBehalfOf: r.reviewer,
	}
}

// Approve applies a candidate as it was read: ABORTED if it changed since.
func (r *Review) Approve(ctx context.Context, candidate *learningpb.Candidate, more Approval) (Decision, error) {
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.ApproveCandidateResponse, error) {
			return r.candidates.ApproveCandidate(ctx, r.approval(candidate, more))
		})
	return Decision{Candidate: response.GetCandidate(), Revision: response.GetRevision()}, err
}

// Reject rejects a candidate as it was read: ABORTED if it changed since. Votes do not bring it back.
func (r *Review) Reject(ctx context.Context, candidate *learningpb.Candidate, reason string) (Decision, error) {
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.RejectCandidateResponse, error) {
			return r.candidates.RejectCandidate(ctx, r.rejection(candidate, reason))
		})
	return Decision{Candidate: response.GetCandidate(), Revision: response.GetRevision()}, err
}

// ApproveAll approves several, and returns what became of each, in order.
func (r *Review) ApproveAll(
	ctx context.Context, candidates []*learningpb.Candidate, more Approval,
) ([]Decision, error) {
	batch := &learningpb.BatchApproveCandidatesRequest{}
	for _, candidate := range candidates {
		batch.Requests = append(batch.Requests, r.approval(candidate, more))
	}
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.BatchApproveCandidatesResponse, error) {
			return r.candidates.BatchApproveCandidates(ctx, batch)
		})
	return decisions(response.GetResults()), err
}

// RejectAll rejects several, and returns what became of each, in order.
func (r *Review) RejectAll(
	ctx context.Context, candidates []*learningpb.Candidate, reason string,
) ([]Decision, error) {
	batch := &learningpb.BatchRejectCandidatesRequest{}
	for _, candidate := range candidates {
		batch.Requests = append(batch.Requests, r.rejection(candidate, reason))
	}
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.BatchRejectCandidatesResponse, error) {
			return r.candidates.BatchRejectCandidates(ctx, batch)
		})
	return decisions(response.GetResults()), err
}

func decisions(results []*learningpb.ReviewResult) []Decision {
	decided := make([]Decision, len(results))
	for place, result := range results {
		decided[place] = Decision{Candidate: result.GetCandidate(), Revision: result.GetRevision()}
		if said := result.GetStatus(); said.GetCode() != int32(codes.OK) {
			message := &statuspb.Status{Code: said.GetCode(), Message: said.GetMessage(), Details: said.GetDetails()}
			decided[place].Err = ofStatus(status.FromProto(message))
		}
	}
	return decided
}

// Undo takes back a person's approval or rejection of a candidate as it was read.
func (r *Review) Undo(ctx context.Context, candidate *learningpb.Candidate) (Decision, error) {
	request := &learningpb.UndoDecisionRequest{
		Namespace: r.namespace, CandidateId: candidate.GetCandidateId(), Etag: candidate.GetEtag(), OnBehalfOf: r.reviewer,
	}
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.UndoDecisionResponse, error) {
			return r.candidates.UndoDecision(ctx, request)
		})
	return Decision{Candidate: response.GetCandidate(), Revision: response.GetRevision()}, err
}

// AskSecondOpinion asks another reviewer, or anybody if nobody is named, about a candidate that awaits review.
func (r *Review) AskSecondOpinion(
	ctx context.Context, candidateID, asked, comment string,
) (*learningpb.ReviewComment, error) {
	request := &learningpb.AskSecondOpinionRequest{
		Namespace: r.namespace, CandidateId: candidateID, Asked: asked, Comment: comment, OnBehalfOf: r.reviewer,
	}
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.AskSecondOpinionResponse, error) {
			return r.candidates.AskSecondOpinion(ctx, request)
		})
	return response.GetComment(), err
}

// Comment comments on a candidate; from whoever was asked for a second opinion it is the answer.
func (r *Review) Comment(ctx context.Context, candidateID, comment string) (*learningpb.ReviewComment, error) {
	request := &learningpb.CommentOnCandidateRequest{
		Namespace: r.namespace, CandidateId: candidateID, Comment: comment, OnBehalfOf: r.reviewer,
	}
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.CommentOnCandidateResponse, error) {
			return r.candidates.CommentOnCandidate(ctx, request)
		})
	return response.GetComment(), err
}

// Preview returns what would be answered otherwise if a candidate were applied. Queries are what was searched lately, at most 1,000.
func (r *Review) Preview(
	ctx context.Context, candidateID string, queries ...*learningpb.PreviewQuery,
) (*learningpb.PreviewedChanges, error) {
	request := &learningpb.PreviewCandidateRequest{
		Namespace: r.namespace, CandidateId: candidateID, Queries: queries,
	}
	response, err := retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.PreviewCandidateResponse, error) {
			return r.candidates.PreviewCandidate(ctx, request)
		})
	return response.GetChanges(), err
}

// AcquireLease shows others that somebody is looking at a candidate. False if another has the lease, which is returned.
func (r *Review) AcquireLease(ctx context.Context, candidateID string) (*learningpb.ReviewLease, bool, error) {
	request := &learningpb.AcquireReviewLeaseRequest{
		Namespace: r.namespace, CandidateId: candidateID, OnBehalfOf: r.reviewer,
	}
	response, err := retried(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.AcquireReviewLeaseResponse, error) {
			return r.candidates.AcquireReviewLease(ctx, request)
		})
	return response.GetLease(), response.GetAcquired(), err
}

// ReleaseLease gives a lease back.
func (r *Review) ReleaseLease(ctx context.Context, candidateID string) error {
	request := &learningpb.ReleaseReviewLeaseRequest{
		Namespace: r.namespace, CandidateId: candidateID, OnBehalfOf: r.reviewer,
	}
	_, err := retried(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.ReleaseReviewLeaseResponse, error) {
			return r.candidates.ReleaseReviewLease(ctx, request)
		})
	return err
}

// Watch returns what changes in the queue, as it happens, until the context ends. An error ends it: list the queue and watch again.
func (r *Review) Watch(
	ctx context.Context, kinds ...commonpb.ResourceKind,
) iter.Seq2[*learningpb.WatchQueueResponse, error] {
	return func(yield func(*learningpb.WatchQueueResponse, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		request := &learningpb.WatchQueueRequest{Namespace: r.namespace, Kinds: kinds}
		stream, err := r.candidates.WatchQueue(ctx, request)
		for err == nil {
			var message *learningpb.WatchQueueResponse
			if message, err = stream.Recv(); err == nil && !yield(message, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(nil, explained(err, noAnswer))
		}
	}
}

// QueueStats counts what was received and decided on each of the last days, and what waits.
func (r *Review) QueueStats(ctx context.Context, days int) (*learningpb.GetQueueStatsResponse, error) {
	request := &learningpb.GetQueueStatsRequest{Namespace: r.namespace, Days: int32(min(days, 1<<30))}
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.GetQueueStatsResponse, error) {
			return r.candidates.GetQueueStats(ctx, request)
		})
}

// Resource returns what is learned for a key. Its namespace is set.
func (r *Review) Resource(ctx context.Context, key *commonpb.ResourceKey) (*commonpb.Resource, error) {
	request := &learningpb.GetResourceRequest{Key: copied(key)}
	request.Key.Namespace = r.namespace
	response, err := retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.GetResourceResponse, error) {
			return r.resources.GetResource(ctx, request)
		})
	return response.GetResource(), err
}

// Resources returns what is learned, in key order. The filter's namespace is set; nil is no filter.
func (r *Review) Resources(
	ctx context.Context, filter *learningpb.ListResourcesRequest,
) iter.Seq2[*commonpb.Resource, error] {
	request := copied(filter)
	request.Namespace = r.namespace
	return pages(ctx, r.deadline, func(ctx context.Context, token string) ([]*commonpb.Resource, string, error) {
		request.PageToken = token
		page, err := r.resources.ListResources(ctx, request)
		return page.GetResources(), page.GetNextPageToken(), err
	})
}

// Put sets a value as a person's decision. The etag is that of the resource that was read, "0" if there must be none, or empty.
func (r *Review) Put(
	ctx context.Context, key *commonpb.ResourceKey, value *commonpb.ResourceValue, etag, reason string,
) (*learningpb.PutResourceResponse, error) {
	request := &learningpb.PutResourceRequest{
		Key: copied(key), Value: value, Etag: etag, Reason: reason, OnBehalfOf: r.reviewer,
	}
	request.Key.Namespace = r.namespace
	return once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.PutResourceResponse, error) {
			return r.resources.PutResource(ctx, request)
		})
}

// Delete deletes a value and returns the revision. Only a person can bring the same value back.
func (r *Review) Delete(ctx context.Context, key *commonpb.ResourceKey, etag, reason string) (int64, error) {
	request := &learningpb.DeleteResourceRequest{
		Key: copied(key), Etag: etag, Reason: reason, OnBehalfOf: r.reviewer,
	}
	request.Key.Namespace = r.namespace
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.DeleteResourceResponse, error) {
			return r.resources.DeleteResource(ctx, request)
		})
	return response.GetRevision(), err
}

// Revisions returns the log, newest first. The filter's namespace is set; nil is no filter.
func (r *Review) Revisions(
	ctx context.Context, filter *learningpb.ListRevisionsRequest,
) iter.Seq2[*learningpb.Revision, error] {
	request := copied(filter)
	request.Namespace = r.namespace
	return pages(ctx, r.deadline, func(ctx context.Context, token string) ([]*learningpb.Revision, string, error) {
		request.PageToken = token
		page, err := r.resources.ListRevisions(ctx, request)
		return page.GetRevisions(), page.GetNextPageToken(), err
	})
}

// Revert restores the state before a revision, or before an operation such as an import. The request's namespace and reviewer are
// set.
func (r *Review) Revert(
	ctx context.Context, what *learningpb.RevertRevisionRequest,
) (*learningpb.RevertRevisionResponse, error) {
	request := copied(what)
	request.Namespace, request.OnBehalfOf = r.namespace, r.reviewer
	return once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.RevertRevisionResponse, error) {
			return r.resources.RevertRevision(ctx, request)
		})
}

// Resolve returns what a node answers for a phrase, asked of the service. The question's namespace is set.
func (r *Review) Resolve(
	ctx context.Context, question *learningpb.ResolveRequest,
) (*learningpb.ResolveResponse, error) {
	request := copied(question)
	request.Namespace = r.namespace
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.ResolveResponse, error) {
			return r.resources.Resolve(ctx, request)
		})
}

// RenderPrompt returns a prompt as it is sent to an AI, as the service renders it. The question's namespace is set.
func (r *Review) RenderPrompt(
	ctx context.Context, question *learningpb.RenderPromptRequest,
) (*learningpb.RenderPromptResponse, error) {
	request := copied(question)
	request.Namespace = r.namespace
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.RenderPromptResponse, error) {
			return r.outputs.RenderPrompt(ctx, request)
		})
}

// RankLearnings orders what there is to learn, 1 to 1,000 items, by a user's profile: the ids of what to show, goals first, and of what
// is left out, which are the basics of what the user knows.
func (r *Review) RankLearnings(
	ctx context.Context, userID string, learnings ...*learningpb.Learning,
) (*learningpb.RankLearningsResponse, error) {
	request := &learningpb.RankLearningsRequest{Namespace: r.namespace, UserId: userID, Learnings: learnings}
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.RankLearningsResponse, error) {
			return r.profiles.RankLearnings(ctx, request)
		})
}

// Nodes returns the nodes of the installation and how far each is.
func (r *Review) Nodes(ctx context.Context) iter.Seq2[*learningpb.Node, error] {
	return pages(ctx, r.deadline, func(ctx context.Context, token string) ([]*learningpb.Node, string, error) {
		page, err := r.nodes.ListNodes(ctx, &learningpb.ListNodesRequest{PageToken: token})
		return page.GetNodes(), page.GetNextPageToken(), err
	})
}
