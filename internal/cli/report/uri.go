package report

import (
	"net/url"
	"strings"
)

// relativeURI returns a path as the relative reference of a URI. It escapes the colon,
// too: before the first slash it would end a scheme.
func relativeURI(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
	}
	return strings.Join(segments, "/")
}

// fileURI returns the URI of an absolute path.
func fileURI(path string) string {
	if windowsVolume.MatchString(path) {
		return "file:///" + path[:2] + relativeURI(path[2:])
	}
	return "file://" + relativeURI(path)
}
