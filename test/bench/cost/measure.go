package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// scenario is something that Overrule does, over and over.
type scenario struct {
	name string
	// ops is how often it is done while counting.
	ops int
	// begin makes the world, and returns the operation.
	begin func() (op func() error, err error)
}

// warm is how often an operation is done before counting: caches fill and lazy
// parts are made.
const warm = 2

// run begins a scenario, warms it up and has count measure its operations.
func (s scenario) run(count func(ops int, all func() error) (map[string]int64, error)) (map[string]int64, error) {
	op, err := s.begin()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	repeat := func(n int) error {
		for range n {
			if err := op(); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		return nil
	}
	if err := repeat(warm); err != nil {
		return nil, err
	}
	return count(s.ops, func() error { return repeat(s.ops) })
}

// allocated counts what is allocated on the heap. The garbage collector is off
// meanwhile: it empties the pools of the standard library, whenever it comes.
func allocated(ops int, all func() error) (map[string]int64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := all()
	runtime.ReadMemStats(&after)
	return map[string]int64{
		allocations: per(after.Mallocs-before.Mallocs, ops),
		bytesUsed:   per(after.TotalAlloc-before.TotalAlloc, ops),
	}, err
}

// holding is something that Overrule keeps many of.
type holding struct {
	name string
	n    int
	// build returns what holds n of it.
	build func(n int) (any, error)
}

// run measures the heap that one of them keeps.
func (h holding) run() (map[string]int64, error) {
	if _, err := h.build(1); err != nil { // whatever is made once
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	before := live()
	held, err := h.build(h.n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.name, err)
	}
	after := live()
	runtime.KeepAlive(held)
	return map[string]int64{heap: per(after-before, h.n)}, nil
}

// live is the heap after the garbage is gone: what a pool gives up is garbage
// only at the next collection.
func live() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func per(sum uint64, n int) int64 {
	return int64((sum + uint64(n)/2) / uint64(n))
}
