package emend

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

const (
	// importDeadline is how long an import may take if its context does not say.
	importDeadline = 10 * time.Minute
	// rowsTogether is how many rows are sent in one message.
	rowsTogether = 500
)

// Import imports many rows: phrase mappings, entities, prohibitions, corrections of terms. They are sent as they are made, so there
// may be more than fit into memory; if making one fails, nothing is imported. A row without a line has its place, from 1 on. The
// header's namespace and operator are set; nil is a header without wishes. It has ten minutes if its context has no deadline.
func (r *Review) Import(
	ctx context.Context, header *learningpb.ImportHeader, rows iter.Seq2[*learningpb.ImportRow, error],
) (*learningpb.ImportResourcesResponse, error) {
	ctx, cancel := within(ctx, importDeadline)
	// What was sent is not the beginning of anything if there is no more.
	defer cancel()
	stream, err := r.resources.ImportResources(ctx)
	if err != nil {
		return nil, explained(err, noAnswerToChange)
	}
	first := copied(header)
	first.Namespace, first.OnBehalfOf = r.namespace, r.reviewer
	sent := stream.Send(&learningpb.ImportResourcesRequest{
		Message: &learningpb.ImportResourcesRequest_Header{Header: first},
	})
	var together []*learningpb.ImportRow
	flush := func() {
		part := &learningpb.ImportRows{Rows: together}
		sent = stream.Send(&learningpb.ImportResourcesRequest{
			Message: &learningpb.ImportResourcesRequest_Rows{Rows: part},
		})
		together = nil
	}
	var place int64
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		place++
		if row.GetLine() == 0 {
			row = copied(row)
			row.Line = place
		}
		if together = append(together, row); len(together) == rowsTogether {
			flush()
		}
		if sent != nil {
			break
		}
	}
	if sent == nil && len(together) > 0 {
		flush()
	}
	// A service that takes no more has an answer that says why.
	if sent != nil && !errors.Is(sent, io.EOF) {
		return nil, explained(sent, noAnswerToChange)
	}
	response, err := stream.CloseAndRecv()
	return response, explained(err, noAnswerToChange)
}
