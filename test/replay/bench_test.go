package replay

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkReplay replays 5,000 writes of 500 routes and their policies.
func BenchmarkReplay(b *testing.B) {
	s := newStory(b, base+"---"+above)
	for n := range 5000 {
		name := "toys-" + strconv.Itoa(n%500)
		manifest := routeAtEdge
		if n/500%2 == 1 {
			manifest = strings.Replace(below, "limits: {route", "limits: {n"+strconv.Itoa(n), 1)
		}
		s.write(strings.ReplaceAll(manifest, "name: toys", "name: "+name))
	}
	for b.Loop() {
		report, err := Replay(b.Context(), s.history(), Options{})
		require.NoError(b, err)
		require.Empty(b, report.Findings)
	}
}
