let nextId = 1

/** Returns a query with EDNS; `ecs`: four octets of an IPv4 /24, or undefined. */
export function query(name, type, ecs) {
  const labels = name.split('.').filter((label) => label !== '')
  const octets = [
    ...header(),
    ...labels.flatMap((label) => [label.length, ...Buffer.from(label)]),
    0,
  ]
  octets.push(type >> 8, type & 255, 0, 1)
  const option = ecs === undefined ? [] : [0, 8, 0, 7, 0, 1, 24, 0, ...ecs.slice(0, 3)]
  octets.push(0, 0, 41, 4, 208, 0, 0, 0, 0, option.length >> 8, option.length & 255, ...option)
  return Buffer.from(octets)
}

function header() {
  nextId = (nextId + 1) & 0xffff
  return [nextId >> 8, nextId & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1]
}

/** With the length in front, for TCP. */
export function framed(message) {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message])
}

export function randomLabel() {
  return Math.random().toString(36).slice(2)
}
