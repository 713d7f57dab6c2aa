package snapshot

import "strconv"

// Version returns the highest resourceVersion that any source of a store had
// come to when the view was taken: no object in it has a higher one. Sources
// come along one by one, so that of another source something lower may be
// missing. It is 0 for a view that no API server fed.
func (v *View) Version() uint64 { return v.version }

// Reached tells that a source has come to a resourceVersion. Feeders call it
// before they put what has that version. A text that is no number is left out.
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

// Passed tells that a source has come to a resourceVersion without anything to
// put, so that the view shows it at once.
func (s *Store) Passed(version string) {
	s.Reached(version)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := *s.view.Load()
	s.publish(&v)
}
