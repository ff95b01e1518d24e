import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Address from "../../../src/tools/web/Address.ts"

const objection = (text: string, allowed: ReadonlyArray<string> = []): string | undefined => {
  const address = Address.parse(text)
  return address === undefined
    ? "not read"
    : Address.objection(
        address,
        allowed.map((range) => Address.parseRange(range)!)
      )
}

describe("an address", () => {
  it("is read in its usual form only", () => {
    for (const text of ["1.2.3", "1.2.3.4.5", "01.2.3.4", "0x7f.0.0.1", "256.1.1.1", "2130706433", "1.2.3.4 ", ""]) {
      assert.isUndefined(Address.parse(text), text)
    }
    for (const text of [
      ":::",
      "1:2:3:4:5:6:7",
      "1::2::3",
      "fe80::1%eth0",
      "::g",
      "1:2:3:4:5:6:7:8:9",
      "::1.2.3",
      "[::1]"
    ]) {
      assert.isUndefined(Address.parse(text), text)
    }
    assert.deepStrictEqual(Address.parse("::ffff:127.0.0.1"), Address.parse("::ffff:7f00:1"))
  })

  it("comes back from its text as it was", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }),
        fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }),
        (six, four) => {
          assert.deepStrictEqual(Address.parse(Address.show({ family: 6, bits: six })), { family: 6, bits: six })
          assert.deepStrictEqual(Address.parse(Address.show({ family: 4, bits: four })), { family: 4, bits: four })
        }
      )
    )
  })

  it("is open if it is public, at both ends of what lies between the special ranges", () => {
    for (const text of [
      "1.1.1.1",
      "9.255.255.255",
      "11.0.0.0",
      "100.63.255.255",
      "100.128.0.0",
      "126.255.255.255",
      "128.0.0.0",
      "169.253.255.255",
      "169.255.0.0",
      "172.15.255.255",
      "172.32.0.0",
      "192.167.255.255",
      "192.169.0.0",
      "198.17.255.255",
      "198.20.0.0",
      "223.255.255.255",
      "2606:4700:4700::1111",
      "2a00::1",
      "::ffff:8.8.8.8",
      "64:ff9b::8.8.8.8"
    ]) {
      assert.isUndefined(objection(text), text)
    }
  })

  it("is named for what it is otherwise", () => {
    const expected: Record<string, string> = {
      "0.0.0.0": "an address of this machine",
      "10.255.255.255": "a private address",
      "100.127.255.255": "an address of a carrier's own network (CGNAT)",
      "127.255.255.254": "a loopback address",
      "169.254.0.1": "a link-local address",
      "169.254.169.254": "a cloud's metadata service",
      "192.0.2.9": "an address for documentation",
      "239.255.255.250": "a multicast address",
      "255.255.255.255": "the broadcast address",
      "250.0.0.1": "a reserved address",
      "::": "the unspecified address",
      "::1": "a loopback address",
      "::127.0.0.1": "an IPv4-compatible address",
      "::ffff:10.0.0.1": "a private address (10.0.0.1 in another form)",
      "::ffff:169.254.169.254": "a cloud's metadata service (169.254.169.254 in another form)",
      "64:ff9b::192.168.1.1": "a private address (192.168.1.1 in another form)",
      "2002:7f00:1::": "a 6to4 address",
      "2001:0:53aa:64c::1": "a Teredo address",
      "2001:db8::1": "an address for documentation",
      "fd00::1": "a unique local address",
      "fd00:ec2::254": "a cloud's metadata service",
      "fe80::1": "a link-local address",
      "ff02::1": "a multicast address",
      "2a00::5efe:127.0.0.1": "a loopback address (127.0.0.1 in another form)",
      "4000::1": "not a public address"
    }
    for (const [text, what] of Object.entries(expected)) assert.strictEqual(objection(text), what, text)
  })

  it("can be opened by name, in every form, but for the metadata services", () => {
    assert.isUndefined(objection("127.0.0.1", ["127.0.0.0/8"]))
    assert.isUndefined(objection("::ffff:127.0.0.1", ["127.0.0.1"]))
    assert.isUndefined(objection("fd12::7", ["fd12::/16"]))
    assert.strictEqual(objection("10.0.0.1", ["10.0.1.0/24"]), "a private address")
    assert.strictEqual(objection("169.254.169.254", ["0.0.0.0/0"]), "a cloud's metadata service")
    for (const range of ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "host", "::/129"]) {
      assert.isUndefined(Address.parseRange(range), range)
    }
  })

  it("is the same in IPv4 and mapped into IPv6, and no other", () => {
    assert.isTrue(Address.same("::ffff:1.2.3.4", "1.2.3.4"))
    assert.isTrue(Address.same("2A00:0::1", "2a00::1"))
    assert.isFalse(Address.same("1.2.3.4", "1.2.3.5"))
    assert.isFalse(Address.same(undefined, "1.2.3.5"))
  })
})
