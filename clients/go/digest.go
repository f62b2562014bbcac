package emend

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// An identity is a resource's key as received, also of kinds that are not known.
type identity struct {
	namespace            string
	kind                 int32
	key, qualifier, user string
}

func (i identity) group() group { return group{i.namespace, i.kind, i.user != ""} }

func (i identity) compare(other identity) int {
	return cmp.Or(
		cmp.Compare(i.namespace, other.namespace), cmp.Compare(i.kind, other.kind), cmp.Compare(i.key, other.key),
		cmp.Compare(i.qualifier, other.qualifier), cmp.Compare(i.user, other.user),
	)
}

// A group is the resources that share a digest.
type group struct {
	namespace  string
	kind       int32
	userScoped bool
}

// A digest is a count, and a sum of hashes modulo 2^128.
type digest struct {
	count     int64
	high, low uint64
}

func (d digest) plus(hash xxh3.Uint128) digest {
	low, carry := bits.Add64(d.low, hash.Lo, 0)
	high, _ := bits.Add64(d.high, hash.Hi, carry)
	return digest{d.count + 1, high, low}
}

func (d digest) minus(hash xxh3.Uint128) digest {
	low, borrow := bits.Sub64(d.low, hash.Lo, 0)
	high, _ := bits.Sub64(d.high, hash.Hi, borrow)
	return digest{d.count - 1, high, low}
}

func (d digest) hex() string {
	sum := binary.BigEndian.AppendUint64(nil, d.high)
	return hex.EncodeToString(binary.BigEndian.AppendUint64(sum, d.low))
}

// itemHash is what one resource adds to the digest of its group.
func itemHash(id identity, revision int64, checksum uint64) xxh3.Uint128 {
	return xxh3.Hash128(hashedBytes(id, revision, checksum))
}

// hashedBytes are seven fields, each preceded by its length.
func hashedBytes(id identity, revision int64, checksum uint64) []byte {
	number := binary.LittleEndian
	hashed := make([]byte, 0, 48+len(id.namespace)+len(id.key)+len(id.qualifier)+len(id.user))
	text := func(part string) {
		hashed = append(number.AppendUint32(hashed, uint32(len(part))), part...)
	}
	text(id.namespace)
	hashed = number.AppendUint32(number.AppendUint32(hashed, 4), uint32(id.kind))
	text(id.key)
	text(id.qualifier)
	text(id.user)
	hashed = number.AppendUint64(number.AppendUint32(hashed, 8), uint64(revision))
	return number.AppendUint64(number.AppendUint32(hashed, 8), checksum)
}
