package emend

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

// A wait between attempts that doubles, with jitter.
type waits struct{ next, most time.Duration }

func newWaits(most time.Duration) waits { return waits{100 * time.Millisecond, most} }

// take returns from half of the wait to all of it, so that not all clients return at once.
func (w *waits) take() time.Duration {
	now := w.next
	w.next = min(2*w.next, w.most)
	return now/2 + rand.N(now/2+1)
}

// retried calls until it succeeds, fails for good, or the deadline comes; the error then says too why the attempt before failed. What
// is called must be safe to repeat.
func retried[T any](
	ctx context.Context, deadline time.Duration, unanswered string, call func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := within(ctx, deadline)
	defer cancel()
	waits := newWaits(2 * time.Second)
	said := unanswered
	for {
		answer, err := call(ctx)
		if err == nil {
			return answer, nil
		}
		err = explained(err, said)
		wait, again := nextAttempt(ctx, err, &waits)
		if !again {
			return answer, err
		}
		said = afterFailure(unanswered, err)
		if !pause(ctx, wait) {
			return answer, explained(ctx.Err(), said)
		}
	}
}

// afterFailure is said when the time is up after an attempt that failed, which is most likely why: a certificate, a closed port.
func afterFailure(unanswered string, err error) string {
	var known *Error
	if !errors.As(err, &known) {
		return unanswered
	}
	return unanswered + "; the attempt before failed: " + known.Message
}

// once calls without another attempt: for what must not be repeated.
func once[T any](
	ctx context.Context, deadline time.Duration, unanswered string, call func(context.Context) (T, error),
) (T, error) {
	ctx, cancel := within(ctx, deadline)
	defer cancel()
	answer, err := call(ctx)
	return answer, explained(err, unanswered)
}

// nextAttempt says how long to wait; false if another attempt is pointless or would come after the deadline.
func nextAttempt(ctx context.Context, err error, waits *waits) (time.Duration, bool) {
	var known *Error
	if !errors.As(err, &known) || known.Code != codes.Unavailable && known.Code != codes.ResourceExhausted {
		return 0, false
	}
	wait := max(waits.take(), known.RetryAfter)
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= wait {
		return 0, false
	}
	return wait, true
}

// within gives a context a deadline unless it has one.
func within(ctx context.Context, deadline time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, deadline)
}

// pause waits; false if the context ends first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
