/** Tells whether a process is there, for whoever finds files that name one. A number may have been given out again since. */

/** Is there a process with this id? Also one of somebody else's, who may not be told anything. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM"
  }
}
