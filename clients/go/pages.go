package emend

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/proto"
)

// pages goes through a list; each page has the deadline of a call.
func pages[T any](
	ctx context.Context, deadline time.Duration, page func(ctx context.Context, token string) ([]T, string, error),
) iter.Seq2[T, error] {
	type part struct {
		items []T
		next  string
	}
	return func(yield func(T, error) bool) {
		for token := ""; ; {
			got, err := retried(ctx, deadline, noAnswer, func(ctx context.Context) (part, error) {
				items, next, err := page(ctx, token)
				return part{items, next}, err
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range got.items {
				if !yield(item, nil) {
					return
				}
			}
			if token = got.next; token == "" {
				return
			}
		}
	}
}

// copied is a message of the caller's to fill in; of nil an empty one.
func copied[T any, P interface {
	*T
	proto.Message
}](message P) P {
	if message == nil {
		return P(new(T))
	}
	return proto.Clone(message).(P)
}
