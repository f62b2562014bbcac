package emend

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// The stream's messages with each resource's value left as encoded bytes: a checksum covers exactly these, and a node that
// encoded values again could not verify those of a kind that it does not know.

type wireResource struct {
	id       identity
	hasKey   bool
	revision int64
	value    []byte
	checksum uint64
}

type wireChange struct {
	revision    int64
	put         *wireResource
	deleted     *identity
	committedAt *timestamppb.Timestamp
}

type wireUpdate struct {
	from, to int64
	changes  []wireChange
	last     bool
	cursor   *learningpb.Cursor
	digests  []*learningpb.Digest
}

type wireChunk struct {
	resources []wireResource
	namespace string
	kind      int32
}

// A wireMessage is one message of the stream; all are nil of one that only newer servers send.
type wireMessage struct {
	other  *learningpb.SubscribeResponse
	chunk  *wireChunk
	update *wireUpdate
}

// fields calls with each field: its number, and its bytes or its number. It stops at the first error.
func fields(message []byte, each func(number protowire.Number, content []byte, value uint64) error) error {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return protowire.ParseError(length)
		}
		message = message[length:]
		var content []byte
		var value uint64
		switch kind {
		case protowire.BytesType:
			content, length = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			value, length = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			value, length = protowire.ConsumeFixed64(message)
		default:
			length = protowire.ConsumeFieldValue(number, kind, message)
		}
		if length < 0 {
			return protowire.ParseError(length)
		}
		message = message[length:]
		if err := each(number, content, value); err != nil {
			return err
		}
	}
	return nil
}

func decodeMessage(encoded []byte) (message wireMessage, err error) {
	err = fields(encoded, func(number protowire.Number, content []byte, _ uint64) error {
		switch number {
		case 3:
			chunk, err := decodeChunk(content)
			message = wireMessage{chunk: chunk}
			return err
		case 5:
			update, err := decodeUpdate(content)
			message = wireMessage{update: update}
			return err
		default:
			return nil
		}
	})
	if err == nil && message.chunk == nil && message.update == nil {
		message.other = &learningpb.SubscribeResponse{}
		err = proto.Unmarshal(encoded, message.other)
	}
	return message, err
}

func decodeChunk(encoded []byte) (*wireChunk, error) {
	chunk := &wireChunk{}
	err := fields(encoded, func(number protowire.Number, content []byte, value uint64) error {
		switch number {
		case 1:
			resource, err := decodeResource(content)
			chunk.resources = append(chunk.resources, resource)
			return err
		case 2:
			chunk.namespace = string(content)
		case 3:
			chunk.kind = int32(value)
		}
		return nil
	})
	for index := range chunk.resources {
		// What nearly all keys have in common is sent once.
		id := &chunk.resources[index].id
		if id.namespace == "" {
			id.namespace = chunk.namespace
		}
		if id.kind == 0 {
			id.kind = chunk.kind
		}
	}
	return chunk, err
}

func decodeResource(encoded []byte) (resource wireResource, err error) {
	err = fields(encoded, func(number protowire.Number, content []byte, value uint64) (err error) {
		switch number {
		case 1:
			resource.hasKey = true
			resource.id, err = decodeKey(content)
		case 2:
			resource.revision = int64(value)
		case 3:
			resource.value = content
		case 4:
			resource.checksum = value
		}
		return err
	})
	return resource, err
}

func decodeKey(encoded []byte) (identity, error) {
	key := &commonpb.ResourceKey{}
	err := proto.Unmarshal(encoded, key)
	return identityOf(key), err
}

func identityOf(key *commonpb.ResourceKey) identity {
	return identity{key.GetNamespace(), int32(key.GetKind()), key.GetKey(), key.GetQualifier(), key.GetUserId()}
}

func (i identity) message() *commonpb.ResourceKey {
	return &commonpb.ResourceKey{
		Namespace: i.namespace, Kind: commonpb.ResourceKind(i.kind), Key: i.key, Qualifier: i.qualifier, UserId: i.user,
	}
}

func decodeUpdate(encoded []byte) (*wireUpdate, error) {
	update := &wireUpdate{}
	err := fields(encoded, func(number protowire.Number, content []byte, value uint64) error {
		switch number {
		case 1:
			update.from = int64(value)
		case 2:
			update.to = int64(value)
		case 3:
			change, err := decodeChange(content)
			update.changes = append(update.changes, change)
			return err
		case 4:
			update.last = value != 0
		case 5:
			update.cursor = &learningpb.Cursor{}
			return proto.Unmarshal(content, update.cursor)
		case 6:
			digest := &learningpb.Digest{}
			update.digests = append(update.digests, digest)
			return proto.Unmarshal(content, digest)
		}
		return nil
	})
	return update, err
}

func decodeChange(encoded []byte) (change wireChange, err error) {
	err = fields(encoded, func(number protowire.Number, content []byte, value uint64) error {
		switch number {
		case 1:
			change.revision = int64(value)
		case 2:
			put, err := decodeResource(content)
			change.put, change.deleted = &put, nil
			return err
		case 3:
			deleted, err := decodeKey(content)
			change.put, change.deleted = nil, &deleted
			return err
		case 5:
			change.committedAt = &timestamppb.Timestamp{}
			return proto.Unmarshal(content, change.committedAt)
		}
		return nil
	})
	return change, err
}

// rawCodec leaves what is received as bytes.
type rawCodec struct{}

var _ encoding.Codec = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	known, is := message.(proto.Message)
	if !is {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return proto.Marshal(known)
}

func (rawCodec) Unmarshal(encoded []byte, into any) error {
	raw, is := into.(*[]byte)
	if !is {
		return fmt.Errorf("%T takes no bytes", into)
	}
	// The buffer is used again.
	*raw = append([]byte(nil), encoded...)
	return nil
}
