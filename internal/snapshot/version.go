package snapshot

import "strconv"

// Version returns the highest resourceVersion that any source of a store had reached when
// the view was published: no object in it has a higher one. Sources are independent, so
// objects of other sources with a lower one can be missing. It is 0 for a view that does
// not come from an API server.
func (v *View) Version() uint64 { return v.version }

// Reached records that a source has reached a resourceVersion. Sources call it before
// they apply objects with that version. A version that is not a number is ignored.
func (s *Store) Reached(version string) {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return
	}
	for {
		old := s.reached.Load()
		if n <= old || s.reached.CompareAndSwap(old, n) {
			return
		}
	}
}

// ResetVersion forgets which resourceVersions were reached: storage was restored to an
// earlier state.
func (s *Store) ResetVersion() { s.reached.Store(0) }

// Passed records that a source has reached a resourceVersion without changes, and
// publishes a view with it.
func (s *Store) Passed(version string) {
	s.Reached(version)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := *s.view.Load()
	s.publish(&v)
}
