package emend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/proto"

	commonpb "emend.dev/clients/go/gen/emend/common/v1"
)

// normalisationVersion is that of [Normalise].
const normalisationVersion = 1

// A resource is one as held, usable or not.
type resource struct {
	revision int64
	checksum uint64
	// value is as received: its checksum covers it.
	value []byte
	// answer is the verb or entity id; empty for other kinds and what can't be used.
	answer string
}

// phraseKey finds the prohibitions of a phrase.
type phraseKey struct{ namespace, key, user string }

// Holdings are all resources of a filter, with the digest of each group.
type holdings struct {
	resources map[identity]resource
	// rejected says why a resource can't be used.
	rejected map[identity]string
	// prohibited has the sorted choices of each phrase.
	prohibited map[phraseKey][]string
	digests    map[group]digest
}

func newHoldings() *holdings {
	return &holdings{
		resources: map[identity]resource{}, rejected: map[identity]string{}, prohibited: map[phraseKey][]string{},
		digests: map[group]digest{},
	}
}

func (h *holdings) has(id identity) bool {
	_, has := h.resources[id]
	return has
}

func (h *holdings) put(received *wireResource) {
	id := received.id
	h.remove(id)
	held := resource{revision: received.revision, checksum: received.checksum, value: received.value}
	value, why := usable(id, received.value, received.checksum)
	if why != "" {
		h.rejected[id] = why
	} else {
		switch value := value.GetValue().(type) {
		case *commonpb.ResourceValue_InvocationPhrase:
			held.answer = value.InvocationPhrase.GetVerb()
		case *commonpb.ResourceValue_EntityAlias:
			held.answer = value.EntityAlias.GetEntityId()
		case *commonpb.ResourceValue_Prohibition:
			phrase, choice := phraseKey{id.namespace, id.key, id.user}, id.qualifier
			place, _ := slices.BinarySearch(h.prohibited[phrase], choice)
			h.prohibited[phrase] = slices.Insert(h.prohibited[phrase], place, choice)
		}
	}
	h.resources[id] = held
	of := id.group()
	h.digests[of] = h.digests[of].plus(itemHash(id, held.revision, held.checksum))
}

func (h *holdings) remove(id identity) {
	held, has := h.resources[id]
	if !has {
		return
	}
	delete(h.resources, id)
	if _, was := h.rejected[id]; was {
		delete(h.rejected, id)
	} else if id.kind == int32(commonpb.ResourceKind_RESOURCE_KIND_PROHIBITION) {
		phrase := phraseKey{id.namespace, id.key, id.user}
		choices := h.prohibited[phrase]
		if place, found := slices.BinarySearch(choices, id.qualifier); found {
			choices = slices.Delete(choices, place, place+1)
		}
		if h.prohibited[phrase] = choices; len(choices) == 0 {
			delete(h.prohibited, phrase)
		}
	}
	of := id.group()
	h.digests[of] = h.digests[of].minus(itemHash(id, held.revision, held.checksum))
}

// differs compares digests. A snapshot's end and a bookmark list all groups that are not empty, an update those it changed.
func (h *holdings) differs(sent map[group]digest, all bool) bool {
	for of, theirs := range sent {
		if h.digests[of] != theirs {
			return true
		}
	}
	for of, own := range h.digests {
		if _, listed := sent[of]; all && !listed && own.count != 0 {
			return true
		}
	}
	return false
}

// usable decodes a value, or says why this node can't use it.
func usable(id identity, encoded []byte, stated uint64) (*commonpb.ResourceValue, string) {
	if computed := xxh3.Hash(encoded); computed != stated {
		return nil, fmt.Sprintf("the value's checksum is %016x, not %016x as stated", computed, stated)
	}
	if _, known := commonpb.ResourceKind_name[id.kind]; !known || id.kind == 0 {
		return nil, fmt.Sprintf("kind %d is not known to this version", id.kind)
	}
	value := &commonpb.ResourceValue{}
	if err := proto.Unmarshal(encoded, value); err != nil {
		return nil, fmt.Sprintf("the value cannot be decoded: %v", err)
	}
	of := kindOf(value)
	if of == 0 {
		return nil, "the value says nothing that this version knows"
	}
	if of != commonpb.ResourceKind(id.kind) {
		name := func(kind commonpb.ResourceKind) string {
			return strings.ToLower(strings.TrimPrefix(kind.String(), "RESOURCE_KIND_"))
		}
		return nil, fmt.Sprintf("a key of kind %s has a value of kind %s", name(commonpb.ResourceKind(id.kind)), name(of))
	}
	version := int32(0)
	if of <= commonpb.ResourceKind_RESOURCE_KIND_SYNONYM {
		version = normalisationVersion
	}
	if value.GetNormalizationVersion() != version {
		return nil, fmt.Sprintf("the key was normalised by version %d; this client knows %d",
			value.GetNormalizationVersion(), normalisationVersion)
	}
	qualifier := id.qualifier
	switch value := value.GetValue().(type) {
	case *commonpb.ResourceValue_InvocationPhrase, *commonpb.ResourceValue_EntityAlias:
		qualifier = ""
	case *commonpb.ResourceValue_Prohibition:
		qualifier = value.Prohibition.GetForbiddenChoice()
	case *commonpb.ResourceValue_Synonym:
		qualifier = Normalise(value.Synonym.GetRepresentative())
	}
	if qualifier != id.qualifier {
		return nil, "the value is for a key with another qualifier"
	}
	return value, ""
}

// kindOf is the kind that a value is of: the numbers of the values are in the order of the kinds'.
func kindOf(value *commonpb.ResourceValue) commonpb.ResourceKind {
	message := value.ProtoReflect()
	set := message.WhichOneof(message.Descriptor().Oneofs().ByName("value"))
	if set == nil {
		return 0
	}
	return commonpb.ResourceKind(set.Number() - 9)
}
