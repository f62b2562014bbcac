package emend

import (
	"context"

	accesspb "emend.dev/clients/go/gen/emend/access/v1"
	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	feedbackpb "emend.dev/clients/go/gen/emend/feedback/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// Policy returns when corrections of a kind are applied.
func (r *Review) Policy(ctx context.Context, kind commonpb.ResourceKind) (*learningpb.Policy, error) {
	request := &learningpb.GetPolicyRequest{Namespace: r.namespace, Kind: kind}
	response, err := retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.GetPolicyResponse, error) {
			return r.policies.GetPolicy(ctx, request)
		})
	return response.GetPolicy(), err
}

// UpdatePolicy changes a policy. The request's namespace and reviewer are set.
func (r *Review) UpdatePolicy(ctx context.Context, change *learningpb.UpdatePolicyRequest) (*learningpb.Policy, error) {
	request := copied(change)
	request.Policy, request.OnBehalfOf = copied(request.Policy), r.reviewer
	request.Policy.Namespace = r.namespace
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.UpdatePolicyResponse, error) {
			return r.policies.UpdatePolicy(ctx, request)
		})
	return response.GetPolicy(), err
}

// PreviewPolicy returns what a changed policy would apply, and how answers would differ. The question's namespace is set.
func (r *Review) PreviewPolicy(
	ctx context.Context, question *learningpb.PreviewPolicyRequest,
) (*learningpb.PreviewPolicyResponse, error) {
	request := copied(question)
	request.Policy = copied(request.Policy)
	request.Policy.Namespace = r.namespace
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.PreviewPolicyResponse, error) {
			return r.policies.PreviewPolicy(ctx, request)
		})
}

// NamespacePolicy returns what applies to the whole search application.
func (r *Review) NamespacePolicy(ctx context.Context) (*learningpb.NamespacePolicy, error) {
	request := &learningpb.GetNamespacePolicyRequest{Namespace: r.namespace}
	response, err := retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*learningpb.GetNamespacePolicyResponse, error) {
			return r.policies.GetNamespacePolicy(ctx, request)
		})
	return response.GetPolicy(), err
}

// UpdateNamespacePolicy changes what applies to the whole search application. The request's namespace and reviewer are set.
func (r *Review) UpdateNamespacePolicy(
	ctx context.Context, change *learningpb.UpdateNamespacePolicyRequest,
) (*learningpb.NamespacePolicy, error) {
	request := copied(change)
	request.Policy, request.OnBehalfOf = copied(request.Policy), r.reviewer
	request.Policy.Namespace = r.namespace
	response, err := once(ctx, r.deadline, noAnswerToChange,
		func(ctx context.Context) (*learningpb.UpdateNamespacePolicyResponse, error) {
			return r.policies.UpdateNamespacePolicy(ctx, request)
		})
	return response.GetPolicy(), err
}

// Access returns who the caller is and what it may call of learning-svc.
func (r *Review) Access(ctx context.Context) (*accesspb.GetAccessResponse, error) {
	request := &accesspb.GetAccessRequest{Namespace: r.namespace}
	return retried(ctx, r.deadline, noAnswer,
		func(ctx context.Context) (*accesspb.GetAccessResponse, error) {
			return r.access.GetAccess(ctx, request)
		})
}

// Access returns who the caller is and what it may call of feedback-svc.
func (f *Feedback) Access(ctx context.Context) (*accesspb.GetAccessResponse, error) {
	request := &accesspb.GetAccessRequest{Namespace: f.namespace}
	return retried(ctx, f.deadline, noAnswer,
		func(ctx context.Context) (*accesspb.GetAccessResponse, error) {
			return f.access.GetAccess(ctx, request)
		})
}

// UpdateSettings changes what is done with the feedback of the search application. The request's namespace is set.
func (f *Feedback) UpdateSettings(
	ctx context.Context, change *feedbackpb.UpdateSettingsRequest,
) (*feedbackpb.Settings, error) {
	request := copied(change)
	request.Settings = copied(request.Settings)
	request.Settings.Namespace = f.namespace
	response, err := once(ctx, f.deadline, noAnswerToChange,
		func(ctx context.Context) (*feedbackpb.UpdateSettingsResponse, error) {
			return f.settings.UpdateSettings(ctx, request)
		})
	return response.GetSettings(), err
}
