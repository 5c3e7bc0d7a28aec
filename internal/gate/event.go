package gate

// EventFrom reads what GitHub, Gitea and Forgejo runners all say in GITHUB_*
// variables about the run.
func EventFrom(lookup func(string) (string, bool)) Event {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	return Event{
		Name: get("GITHUB_EVENT_NAME"), Attempt: get("GITHUB_RUN_ATTEMPT"), RunID: get("GITHUB_RUN_ID"),
		Actor: get("GITHUB_ACTOR"), TriggeringActor: get("GITHUB_TRIGGERING_ACTOR"),
		Ref: get("GITHUB_REF"), Commit: get("GITHUB_SHA"), Repository: get("GITHUB_REPOSITORY"),
	}
}
