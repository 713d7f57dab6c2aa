package webhook

import (
	"strconv"
	"strings"
)

// sign has the audit log say what a verdict was found by, and by whom. Where
// nobody judged, there is nothing to sign.
func (s *Server) sign(a *answer, door string) {
	if a.on != nil && door == doorValidate {
		a.annotate("judged-on", strings.TrimSpace(strconv.FormatUint(a.version(), 10)+" "+s.Replica))
	}
}

// version returns the highest resourceVersion that was known when an answer was
// found, 0 if nobody judged.
func (a *answer) version() uint64 {
	if a.on == nil {
		return 0
	}
	return a.on.Version()
}
