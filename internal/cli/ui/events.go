package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// heartbeat keeps connections open that have nothing to send.
const heartbeat = 20 * time.Second

// getEvents sends the status as server-sent events: at once, and whenever it changes.
// The page then asks again for what it shows.
func (s *Server) getEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil { // the deadline for reading a request would end the stream
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		status, changed := s.model.watch()
		data, err := json.Marshal(status)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return // the browser has gone away
		}
		if !waitForChange(w, r, control, changed, tick.C) {
			return
		}
	}
}

// waitForChange returns true when the status has changed, and false when the request
// has ended.
func waitForChange(w http.ResponseWriter, r *http.Request, control *http.ResponseController, changed <-chan struct{}, tick <-chan time.Time) bool {
	for {
		if err := control.Flush(); err != nil {
			return false
		}
		select {
		case <-changed:
			return true
		case <-r.Context().Done():
			return false
		case <-tick:
			if _, err := fmt.Fprint(w, ":\n\n"); err != nil {
				return false
			}
		}
	}
}
