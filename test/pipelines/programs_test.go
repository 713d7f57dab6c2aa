//go:build long

package pipelines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// The variables of the programs that the test binary stands for.
const (
	// commentsVariable names the file with the comments of the pull request.
	commentsVariable = "TEST_COMMENTS"
	// forbiddenVariable makes writes of comments fail.
	forbiddenVariable = "TEST_FORBIDDEN"
	// loginVariable is the user of the token of GitHub. Without it, the token is of a job.
	loginVariable = "TEST_LOGIN"
	gitlabToken   = "glpat-secret"
)

// comment is a comment of GitHub or a note of GitLab.
type comment struct {
	ID     int    `json:"id"`
	Body   string `json:"body"`
	System bool   `json:"system"`
	User   struct {
		Type  string `json:"type"`
		Login string `json:"login"`
	} `json:"user"`
}

// TestMain runs the programs jq, gh and curl: links to the test binary.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "jq":
		exit(runJQ(os.Args[1:], os.Stdin, os.Stdout))
	case "gh":
		exit(runGH(os.Args[1:], os.Stdout))
	case "curl":
		exit(runCurl(os.Args[1:], os.Stdout))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(22)
	}
	os.Exit(0)
}

// programs returns a folder with links to the plugin, kubectl, gh, jq and curl.
func programs(t *testing.T) string {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin", "controlplane")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	for name, target := range map[string]string{
		"kubectl-overrule": filepath.Join(root, "bin", "kubectl-overrule"),
		"kubectl":          filepath.Join(assets, "kubectl"),
		"gh":               self, "jq": self, "curl": self,
	} {
		require.FileExists(t, target, "run \"make build controlplane\"")
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	return dir
}

// flags returns the values of flags, by name, and the other arguments.
func flags(args []string, switches ...string) (values map[string]string, rest []string) {
	values = make(map[string]string)
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "--")
		switch {
		case !isFlag:
			rest = append(rest, args[i])
		case slices.Contains(switches, name):
			values[name] = "true"
		default:
			i++
			values[name] = args[i]
		}
	}
	return values, rest
}

// runJQ is jq with a filter, and with -r.
func runJQ(args []string, in io.Reader, out io.Writer) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if args[0] == "-r" {
		args = args[1:]
	}
	if len(args) != 1 {
		return fmt.Errorf("jq: unexpected arguments %q", args)
	}
	return filter(args[0], data, out)
}

// runGH is "gh api" on the comments.
func runGH(args []string, out io.Writer) error {
	f, rest := flags(args, "paginate", "silent")
	if len(rest) != 2 || rest[0] != "api" || os.Getenv("GH_TOKEN") == "" {
		return fmt.Errorf("gh: unexpected arguments %q", args)
	}
	path, _, _ := strings.Cut(rest[1], "?")
	if path == "user" {
		return printUser(f["jq"], out)
	}
	if method := f["method"]; method != "" {
		file, ok := strings.CutPrefix(f["field"], "body=@")
		if !ok {
			return fmt.Errorf("gh: unexpected field %q", f["field"])
		}
		if os.Getenv(forbiddenVariable) != "" {
			return fmt.Errorf("gh: Resource not accessible by integration (HTTP 403)")
		}
		return writeComment(method, path, map[string]string{
			"POST": "repos/acme/shop/issues/7/comments", "PATCH": "repos/acme/shop/issues/comments/",
		}[method], file, "Bot")
	}
	if path != "repos/acme/shop/issues/7/comments" || f["paginate"] == "" {
		return fmt.Errorf("gh: unexpected path %q", rest[1])
	}
	text, err := os.ReadFile(os.Getenv(commentsVariable))
	if err != nil {
		return err
	}
	return filter(f["jq"], text, out)
}

// printUser is "gh api user", which prints the answer of the API also if it is an error.
func printUser(query string, out io.Writer) error {
	login := os.Getenv(loginVariable)
	if login == "" {
		fmt.Fprint(out, `{"message":"Resource not accessible by integration","status":"403"}`)
		return fmt.Errorf("gh: Resource not accessible by integration (HTTP 403)")
	}
	return filter(query, []byte(`{"login":"`+login+`"}`), out)
}

// filter prints the results of a filter, as jq -r and gh do.
func filter(text string, data []byte, out io.Writer) error {
	query, err := gojq.Parse(text)
	if err != nil {
		return err
	}
	code, err := gojq.Compile(query, gojq.WithEnvironLoader(os.Environ))
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	results := code.Run(value)
	for {
		result, ok := results.Next()
		if !ok {
			return nil
		}
		if err, ok := result.(error); ok {
			return err
		}
		fmt.Fprintln(out, result)
	}
}

// runCurl is curl on the notes of a merge request.
func runCurl(args []string, out io.Writer) error {
	f, rest := flags(args, "silent", "show-error", "fail")
	file, ok := strings.CutPrefix(f["header"], "@")
	if !ok || len(rest) != 1 || slices.Contains(args, gitlabToken) {
		return fmt.Errorf("curl: unexpected arguments %q", args)
	}
	header, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if string(header) != "PRIVATE-TOKEN: "+gitlabToken+"\n" || os.Getenv(forbiddenVariable) != "" {
		return fmt.Errorf("curl: The requested URL returned error: 403")
	}
	const notes = "https://gitlab.example.com/api/v4/projects/12/merge_requests/7/notes"
	if method := f["request"]; method != "" {
		file, ok := strings.CutPrefix(f["data-urlencode"], "body@")
		if !ok {
			return fmt.Errorf("curl: unexpected data %q", f["data-urlencode"])
		}
		return writeComment(method, rest[0], map[string]string{"POST": notes, "PUT": notes + "/"}[method], file, "")
	}
	return printPage(rest[0], notes, out)
}

// printPage prints the notes of a page of 100.
func printPage(address, notes string, out io.Writer) error {
	u, err := url.Parse(address)
	if err != nil || !strings.HasPrefix(address, notes+"?") || u.Query().Get("per_page") != "100" {
		return fmt.Errorf("curl: unexpected URL %q", address)
	}
	page, err := strconv.Atoi(u.Query().Get("page"))
	if err != nil {
		return err
	}
	all, err := readComments(os.Getenv(commentsVariable))
	if err != nil {
		return err
	}
	all = all[min(len(all), 100*(page-1)):]
	return json.NewEncoder(out).Encode(all[:min(len(all), 100)])
}

// writeComment creates a comment, or updates that whose ID follows the expected path.
func writeComment(method, path, want, bodyFile, userType string) error {
	id, ok := strings.CutPrefix(path, want)
	if want == "" || !ok || (method == "POST") != (id == "") {
		return fmt.Errorf("unexpected request %s %s", method, path)
	}
	body, err := os.ReadFile(bodyFile)
	if err != nil {
		return err
	}
	all, err := readComments(os.Getenv(commentsVariable))
	if err != nil {
		return err
	}
	if id == "" {
		c := comment{ID: 1000 + len(all), Body: string(body)}
		c.User.Type = userType
		all = append(all, c)
	}
	for i, c := range all {
		if strconv.Itoa(c.ID) == id {
			all[i].Body = string(body)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv(commentsVariable), data, 0o600)
}

func readComments(file string) (out []comment, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(data, &out)
}
