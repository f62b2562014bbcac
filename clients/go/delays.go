package emend

import (
	"slices"
	"time"

	learningpb "emend.dev/clients/go/gen/emend/learning/v1"
)

// boundsMs are the upper bounds of the buckets, in milliseconds.
var boundsMs = []int64{
	1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000,
}

// A histogram of how long changes took from their commit until they were applied.
type delays struct {
	counts [17]int64
	sum    int64
}

// add counts one. A negative delay, possible with two clocks, counts as zero.
func (d *delays) add(delay time.Duration) {
	millis := max(delay.Milliseconds(), 0)
	bucket, _ := slices.BinarySearch(boundsMs, millis)
	d.counts[bucket]++
	d.sum += millis
}

func (d *delays) message() *learningpb.DelayHistogram {
	return &learningpb.DelayHistogram{BoundsMs: boundsMs, Counts: slices.Clone(d.counts[:]), SumMs: d.sum}
}

func (d *delays) merge(older delays) {
	for bucket, count := range older.counts {
		d.counts[bucket] += count
	}
	d.sum += older.sum
}
