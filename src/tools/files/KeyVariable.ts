/** The variable that tells a program the key of its logical attempt. By itself, so that a process that needs nothing else loads nothing else. */
export const keyVariable = "WRIT_IDEMPOTENCY_KEY"
