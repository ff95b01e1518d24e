/**
 * Who owns an unsettled intent, and whether that owner still lives. On the same machine the process table decides at once;
 * elsewhere a lease does: an owner that has not been heard of for its length counts as dead. Keeps nothing.
 */
import { randomBytes } from "node:crypto"
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import { isAlive } from "../tools/Alive.ts"

/** One open ledger in one process. */
export interface Owner {
  readonly id: string
  /** Where process ids mean the same: this boot of this kernel in this process namespace, or this host. */
  readonly place: string
  readonly pid: number
  /** Tells a process from a later one with the same number; empty where the system does not say. */
  readonly started: string
}

const read = (get: () => string): string => {
  try {
    return get().trim()
  } catch {
    return ""
  }
}

/** State and start of a process, from Linux; undefined where there is no such file. The name in brackets may hold anything. */
const stat = (pid: number): { readonly state: string; readonly started: string } | undefined => {
  const text = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  return text === "" ? undefined : { state: fields[0]!, started: fields[19]! }
}

/** A new owner for this process. Two ledgers open at once are two owners. */
export const newOwner = (): Owner => {
  const boot = read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
  const namespace = read(() => readlinkSync("/proc/self/ns/pid"))
  const started = stat(process.pid)?.started ?? ""
  return {
    id: `${process.pid}-${started}-${randomBytes(8).toString("hex")}`,
    place: boot === "" ? hostname() : `${boot} ${namespace}`,
    pid: process.pid,
    started
  }
}

/** Does `other` live, as far as `me` can tell? `heardMillis` is how long ago it last renewed its lease. */
export const lives = (me: Owner, other: Owner, heardMillis: number, leaseMillis: number): boolean => {
  const fresh = heardMillis <= leaseMillis
  if (other.place !== me.place) return fresh
  if (!isAlive(other.pid)) return false
  const now = stat(other.pid)
  // Without a process table a number may have been given out again, so the lease has to agree.
  if (now === undefined || other.started === "") return fresh
  return now.started === other.started && now.state !== "Z" && now.state !== "X"
}
