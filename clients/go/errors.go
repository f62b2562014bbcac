package emend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	noAnswer         = "no answer within the time limit"
	noAnswerToChange = noAnswer + "; what was to be changed may be changed all the same"
)

// A Violation is a field of a request that is wrong.
type Violation struct {
	// Field is its path, for example correction.verb.correct_choice.
	Field string
	// Description says what is wrong, with the bound.
	Description string
}

// A Precondition is what the state of a server does not allow.
type Precondition struct {
	// Type is stable, in UPPER_SNAKE_CASE.
	Type string
	// Subject is what it is about, for example a resource's key.
	Subject string
	// Description says what is wrong.
	Description string
}

// An Error says why a call failed.
type Error struct {
	// Code is that of gRPC.
	Code codes.Code
	// Reason is stable, in UPPER_SNAKE_CASE; empty if there is none.
	Reason string
	// Message is one sentence for developers.
	Message string
	// Violations are all fields that are wrong.
	Violations []Violation
	// Preconditions are those that do not hold.
	Preconditions []Precondition
	// RetryAfter is how long the server asks to wait; zero if it does not.
	RetryAfter time.Duration
	// RequestID finds the request in the server's log; empty if the server said none.
	RequestID string

	cause error
}

// Error is the whole text for people, a line for each violated field.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(codeName(e.Code))
	if e.Reason != "" {
		fmt.Fprintf(&text, " (%s)", e.Reason)
	}
	if len(e.Violations) == 0 && e.Message != "" {
		fmt.Fprintf(&text, ": %s", e.Message)
	}
	for _, violation := range e.Violations {
		fmt.Fprintf(&text, "\n  %s: %s", violation.Field, violation.Description)
	}
	for _, one := range e.Preconditions {
		if one.Description != e.Message {
			fmt.Fprintf(&text, "\n  %s %s: %s", one.Type, one.Subject, one.Description)
		}
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&text, "\n  try again in %s", e.RetryAfter)
	}
	if e.RequestID != "" && (e.Code == codes.Internal || e.Code == codes.Unknown) {
		fmt.Fprintf(&text, "\n  request id %s", e.RequestID)
	}
	return text.String()
}

// Unwrap returns what caused it.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus makes [status.FromError] and [status.Code] work.
func (e *Error) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// MayBeStored says whether a change may have been made although the call failed: there was no answer in time. A correction
// that is submitted again with the same request id is stored once.
func (e *Error) MayBeStored() bool { return e.Code == codes.DeadlineExceeded }

// CodeOf returns the code of an error of this package, and [codes.Unknown] for another.
func CodeOf(err error) codes.Code {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return status.Code(err)
}

func invalid(field, description string) *Error {
	return invalidFields([]Violation{{field, description}})
}

func invalidFields(violations []Violation) *Error {
	return &Error{
		Code: codes.InvalidArgument, Reason: "INVALID_FIELDS", Message: "invalid argument", Violations: violations,
	}
}

// explained turns what gRPC returned into an [*Error]; nil stays nil. A nil pointer must not become an error: it returns the
// interface.
func explained(err error, unanswered string) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: codes.DeadlineExceeded, Message: unanswered, cause: err}
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Code: codes.Canceled, Message: "the caller cancelled the call", cause: err}
	}
	said, _ := status.FromError(err)
	explained := ofStatus(said)
	explained.cause = err
	if said.Code() == codes.DeadlineExceeded {
		explained.Message = unanswered
	}
	return explained
}

func ofStatus(said *status.Status) *Error {
	explained := &Error{Code: said.Code(), Message: said.Message()}
	for _, detail := range said.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			explained.Reason = detail.GetReason()
		case *errdetails.BadRequest:
			for _, one := range detail.GetFieldViolations() {
				violation := Violation{one.GetField(), one.GetDescription()}
				explained.Violations = append(explained.Violations, violation)
			}
		case *errdetails.PreconditionFailure:
			for _, one := range detail.GetViolations() {
				precondition := Precondition{one.GetType(), one.GetSubject(), one.GetDescription()}
				explained.Preconditions = append(explained.Preconditions, precondition)
			}
		case *errdetails.RetryInfo:
			// A delay that is no duration is none.
			if delay := detail.GetRetryDelay(); delay.CheckValid() == nil {
				explained.RetryAfter = max(delay.AsDuration(), 0)
			}
		case *errdetails.RequestInfo:
			explained.RequestID = detail.GetRequestId()
		}
	}
	return explained
}

// codeName is the name of a code as the specification of gRPC writes it.
func codeName(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	if code == codes.OK {
		return "OK"
	}
	name := []rune(code.String())
	for place := len(name) - 1; place > 0; place-- {
		if name[place] >= 'A' && name[place] <= 'Z' {
			name = slices.Insert(name, place, '_')
		}
	}
	return strings.ToUpper(string(name))
}
