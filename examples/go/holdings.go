package main

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/zeebo/xxh3"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	commonpb "emend.example/search-node/gen/emend/common/v1"
	learningpb "emend.example/search-node/gen/emend/learning/v1"
)

// [normalise]
// Default_Ignorable_Code_Point, from and to: invisible, so two phrases must not differ by it.
var ignorable = [][2]rune{
	{0xAD, 0xAD}, {0x34F, 0x34F}, {0x61C, 0x61C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F},
	{0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
}

// Version 1: NFKC case-folded, white space folded and trimmed. Keys on the stream are normalised already.
func normalise(text string) string {
	keep := func(r rune) rune {
		for _, span := range ignorable {
			if span[0] <= r && r <= span[1] {
				return -1
			}
		}
		return r
	}
	for {
		folded := cases.Fold().String(norm.NFKC.String(strings.Map(keep, text)))
		folded = norm.NFKC.String(folded)
		if folded == text {
			return strings.Join(strings.Fields(text), " ")
		}
		text = folded
	}
}

// [/normalise]

// [digest]
// The hash that one resource adds to the digest of its group.
func itemHash(resource *commonpb.Resource) xxh3.Uint128 {
	key := resource.GetKey()
	number := binary.LittleEndian
	parts := [][]byte{
		[]byte(key.GetNamespace()),
		number.AppendUint32(nil, uint32(key.GetKind())),
		[]byte(key.GetKey()),
		[]byte(key.GetQualifier()),
		[]byte(key.GetUserId()),
		number.AppendUint64(nil, uint64(resource.GetRevision())),
		number.AppendUint64(nil, resource.GetValueChecksum()),
	}
	var bytes []byte
	for _, part := range parts {
		bytes = number.AppendUint32(bytes, uint32(len(part)))
		bytes = append(bytes, part...)
	}
	return xxh3.Hash128(bytes)
}

// A count and a sum modulo 2^128.
type digest struct {
	count    int64
	high, lo uint64
}

func (d digest) plus(hash xxh3.Uint128) digest {
	lo, carry := bits.Add64(d.lo, hash.Lo, 0)
	high, _ := bits.Add64(d.high, hash.Hi, carry)
	return digest{d.count + 1, high, lo}
}

func (d digest) minus(hash xxh3.Uint128) digest {
	lo, borrow := bits.Sub64(d.lo, hash.Lo, 0)
	high, _ := bits.Sub64(d.high, hash.Hi, borrow)
	return digest{d.count - 1, high, lo}
}

// Resources that share a digest.
type group struct {
	namespace  string
	kind       commonpb.ResourceKind
	userScoped bool
}

// Identifies a resource.
type identity struct {
	group
	key, qualifier, user string
}

func identityOf(key *commonpb.ResourceKey) identity {
	of := group{key.GetNamespace(), key.GetKind(), key.GetUserId() != ""}
	return identity{of, key.GetKey(), key.GetQualifier(), key.GetUserId()}
}

// Holdings are the resources that a node holds, with the digest of each group.
type Holdings struct {
	cursor       *learningpb.Cursor
	installation string
	resources    map[identity]*commonpb.Resource
	digests      map[group]digest
	// The prohibitions of each phrase.
	prohibited map[string]map[identity]bool
}

func newHoldings() *Holdings {
	return &Holdings{
		resources:  map[identity]*commonpb.Resource{},
		digests:    map[group]digest{},
		prohibited: map[string]map[identity]bool{},
	}
}

func (h *Holdings) put(resource *commonpb.Resource) {
	h.remove(resource.GetKey())
	id := identityOf(resource.GetKey())
	h.resources[id] = resource
	h.digests[id.group] = h.digests[id.group].plus(itemHash(resource))
	if id.kind == commonpb.ResourceKind_RESOURCE_KIND_PROHIBITION {
		if h.prohibited[id.key] == nil {
			h.prohibited[id.key] = map[identity]bool{}
		}
		h.prohibited[id.key][id] = true
	}
}

func (h *Holdings) remove(key *commonpb.ResourceKey) {
	id := identityOf(key)
	resource, there := h.resources[id]
	if !there {
		return
	}
	delete(h.resources, id)
	delete(h.prohibited[id.key], id)
	h.digests[id.group] = h.digests[id.group].minus(itemHash(resource))
}

// Whether the server's digests differ. An update has those of the groups that it changed, a bookmark has all.
func (h *Holdings) differs(sent []*learningpb.Digest, allGroups bool) bool {
	seen := map[group]bool{}
	for _, one := range sent {
		of := group{one.GetNamespace(), one.GetKind(), one.GetUserScoped()}
		seen[of] = true
		hash := one.GetHash()
		if len(hash) != 16 {
			return true
		}
		theirs := digest{one.GetCount(), binary.BigEndian.Uint64(hash[:8]), binary.BigEndian.Uint64(hash[8:])}
		if h.digests[of] != theirs {
			return true
		}
	}
	for of, own := range h.digests {
		if allGroups && own.count != 0 && !seen[of] {
			return true
		}
	}
	return false
}

// [/digest]
