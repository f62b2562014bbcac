package emend

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/zeebo/xxh3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// cacheFormat begins each copy on disk.
const cacheFormat = "emend-go-1\n"

// A cacheHeader says what a copy is of.
type cacheHeader struct {
	Subscription string    `json:"subscription"`
	Installation string    `json:"installation"`
	Cursor       []byte    `json:"cursor"`
	CurrentAt    time.Time `json:"current_at"`
	WrittenAt    time.Time `json:"written_at"`
	Count        int       `json:"count"`
}

// A saved is a state to write: entries are copied, so that the stream goes on meanwhile.
type saved struct {
	header  cacheHeader
	entries []savedEntry
}

type savedEntry struct {
	id       identity
	resource resource
}

// encode writes the format, the header, each resource as on the stream, and the XXH3-64 of all that.
func (s saved) encode() ([]byte, error) {
	header, err := json.Marshal(s.header)
	if err != nil {
		return nil, err
	}
	encoded := protowire.AppendBytes([]byte(cacheFormat), header)
	for _, entry := range s.entries {
		key, err := proto.Marshal(entry.id.message())
		if err != nil {
			return nil, err
		}
		var one []byte
		one = protowire.AppendBytes(protowire.AppendTag(one, 1, protowire.BytesType), key)
		one = protowire.AppendVarint(protowire.AppendTag(one, 2, protowire.VarintType), uint64(entry.resource.revision))
		one = protowire.AppendBytes(protowire.AppendTag(one, 3, protowire.BytesType), entry.resource.value)
		one = protowire.AppendFixed64(protowire.AppendTag(one, 4, protowire.Fixed64Type), entry.resource.checksum)
		encoded = protowire.AppendBytes(encoded, one)
	}
	return binary.LittleEndian.AppendUint64(encoded, xxh3.Hash(encoded)), nil
}

// write replaces the copy completely or not at all: what crashes leaves the old one. Only its owner may read it.
func (s saved) write(path string) (err error) {
	encoded, err := s.encode()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(file.Name())))
		}
	}()
	_, err = file.Write(encoded)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeUnfinished removes what a crash left behind.
func removeUnfinished(path string) error {
	left, err := filepath.Glob(path + ".*.new")
	for _, name := range left {
		err = errors.Join(err, ignoreMissing(os.Remove(name)))
	}
	return err
}

// load reads a copy of this subscription into a new replica; nil if there is none.
func load(path, subscription string) (*replica, cacheHeader, error) {
	var header cacheHeader
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, header, nil
	}
	if err != nil {
		return nil, header, err
	}
	damaged := func(why string) (*replica, cacheHeader, error) {
		return nil, header, fmt.Errorf("%s is no copy to start from: %s", path, why)
	}
	start, end := len(cacheFormat), len(text)-8
	if end < start || string(text[:start]) != cacheFormat {
		return damaged("it has another format")
	}
	if xxh3.Hash(text[:end]) != binary.LittleEndian.Uint64(text[end:]) {
		return damaged("it was cut or altered")
	}
	rest := text[start:end]
	encoded, length := protowire.ConsumeBytes(rest)
	if length < 0 {
		return damaged("its header is cut")
	}
	rest = rest[length:]
	restored := newReplica()
	restored.position = &learningpb.Cursor{}
	err = errors.Join(json.Unmarshal(encoded, &header), proto.Unmarshal(header.Cursor, restored.position))
	if err != nil {
		return damaged(err.Error())
	}
	if header.Subscription != subscription {
		return damaged("it is of another subscription")
	}
	for len(rest) > 0 {
		encoded, length := protowire.ConsumeBytes(rest)
		if length < 0 {
			return damaged("a resource is cut")
		}
		rest = rest[length:]
		resource, err := decodeResource(encoded)
		if err != nil {
			return damaged(err.Error())
		}
		restored.held.put(&resource)
	}
	if len(restored.held.resources) != header.Count {
		return damaged("resources are missing")
	}
	restored.installation, restored.resumable = header.Installation, true
	return restored, header, nil
}
