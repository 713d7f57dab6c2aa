package webhook

import (
	"strconv"
	"strings"
)

// sign has the audit log say what a verdict was found by, and by whom. Where
// nobody judged, there is nothing to sign.
func (s *Server) recordVersion(a *response, door string) {
	if a.view != nil && door == webhookValidate {
		a.setAuditAnnotation("judged-on", strings.TrimSpace(strconv.FormatUint(a.viewVersion(), 10)+" "+s.Replica))
	}
}

// version returns the highest resourceVersion that was known when an answer was
// found, 0 if nobody judged.
func (a *response) viewVersion() uint64 {
	if a.view == nil {
		return 0
	}
	return a.view.Version()
}
