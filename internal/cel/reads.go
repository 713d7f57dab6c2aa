package cel

import (
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Read is a value that an expression read: a string, a number, a bool or null.
type Read struct {
	Path  string // as in effective.limits.a.max
	Value any
}

// reads are the values that an evaluation read, each once. Of a comprehension, they are
// those of its last element, at which all() ends if it is false, until something else is
// read.
type reads struct {
	all []Read
	// keep is how many of the first ones the next read keeps, -1 for all.
	keep int
}

// Values evaluates the expression, and returns the values that it read of effective and
// before, the cost, and its error. The others are names of the path or of the request, as
// messages have them anyway.
func (e *Expression) Values(on *Variables) (values []Read, cost uint64, err error) {
	recorded := *on
	recorded.reads = &reads{keep: -1}
	_, cost, err = e.Evaluate(&recorded)
	return recorded.reads.all, cost, err
}

func (r *reads) add(at *location, native any) {
	if r == nil || native == Opaque {
		return
	}
	if r.keep >= 0 {
		r.all, r.keep = r.all[:min(r.keep, len(r.all))], -1
	}
	one := Read{at.String(), native}
	if !slices.ContainsFunc(r.all, func(o Read) bool { return o.Path == one.Path }) {
		r.all = append(r.all, one)
	}
}

// iterator returns an iterator that forgets the reads of an element at the next one. The
// elements of a list have a location.
func (r *reads) iterator(over traits.Iterator, of *list) traits.Iterator {
	if r == nil {
		return over
	}
	return &recordingIterator{Iterator: over, reads: r, before: len(r.all), list: of}
}

type recordingIterator struct {
	traits.Iterator
	reads  *reads
	before int // reads before the first element
	list   *list
	next   int
}

// HasNext implements traits.Iterator.
func (i *recordingIterator) HasNext() ref.Val {
	has := i.Iterator.HasNext()
	i.reads.keep = i.before
	return has
}

// Next implements traits.Iterator.
func (i *recordingIterator) Next() ref.Val {
	v := i.Iterator.Next()
	if i.list != nil {
		v = i.list.Get(types.Int(i.next))
		i.next++
	}
	return v
}
