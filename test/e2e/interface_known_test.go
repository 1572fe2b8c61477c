package e2e

import "testing"

// Sentences of interface.md that a tracker of the 5.x line does not keep, and that Portico cannot keep for it.

func TestInterface_UpdateAttachment_LastChangeTimeMovesWithAComment(t *testing.T) {
	known(t, func(t testing.TB) {
		got := open(t, plan{}).put(t, "dev", "/rest/bug/attachment/1", `{"ids":[1],"comment":"a comment"}`).ok(t, 200)
		if got.at(t, "attachments", 0, "last_change_time") == "2020-01-02T03:04:05Z" {
			t.Error("a comment was added and the time is that of the previous update")
		}
	})
}

func TestInterface_FlagTypeChange_KeysAreFieldsThatChangedScopesToo(t *testing.T) {
	known(t, func(t testing.TB) {
		is(t, open(t, plan{}).changed(t, 16, `{"inclusions":["TestProduct"]}`), `{}`)
	})
}

func TestInterface_GetAttachment_PrivateForItsSubmitter(t *testing.T) {
	known(t, func(t testing.TB) {
		is(t, walk(t, open(t, plan{}).attachment(t, "exinsider", 7), "id"), `7`)
	})
}
