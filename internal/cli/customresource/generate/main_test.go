package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEmbeddedDefinitionsAreUpToDate(t *testing.T) {
	want, err := definitions(t.Context(), "../../../../deploy/crds")
	require.NoError(t, err)
	files, err := os.ReadDir("../builtin")
	require.NoError(t, err)
	assert.Len(t, files, len(want))
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join("..", "builtin", name))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(data, got), "%s is out of date: run make generate", name)
	}
}

func TestRunReplacesTheFiles(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "builtin")
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "old.json"), nil, 0o600))
	require.NoError(t, run(t.Context(), folder, "../../../../deploy/crds"))
	assert.NoFileExists(t, filepath.Join(folder, "old.json"))
	assert.FileExists(t, filepath.Join(folder, "gateway.networking.k8s.io_HTTPRoute.json"))
	assert.ErrorContains(t, run(t.Context(), folder, t.TempDir()), "no files in")
}

func TestStripKeepsPropertiesThatAreNamedAsDocumentation(t *testing.T) {
	text := func() map[string]any { return map[string]any{"type": "string", "description": "what it is"} }
	schema := map[string]any{
		"title": "a", "example": 1, "externalDocs": map[string]any{},
		"properties":           map[string]any{"description": text(), "list": map[string]any{"items": text()}},
		"additionalProperties": text(), "not": text(), "oneOf": []any{text()},
	}
	plain := map[string]any{"type": "string"}
	assert.Equal(t, map[string]any{
		"properties":           map[string]any{"description": plain, "list": map[string]any{"items": plain}},
		"additionalProperties": plain, "not": plain, "oneOf": []any{plain},
	}, strip(schema))
}
