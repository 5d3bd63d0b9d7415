/** First label of the TXT record of a zone that names its active groups. */
export const ACTIVE_GROUPS_LABEL = 'kuadrant-active-groups'
/** Longest name of a group, in characters. */
export const GROUP_CHARACTERS_MAX = 16

/** Most groups of one TXT record: an operator writes them to the status of every record of the zone. */
const GROUPS_MAX = 100
const VERSION = '1'
const QUOTES = /^"|"$/g

/** True if a group may have this name: it appears in the TXT record. */
export function isGroup(text: string): boolean {
  return text !== '' && text.length <= GROUP_CHARACTERS_MAX && !/[;&,"'\s\p{Cc}]/u.test(text)
}

/**
 * Reads `version=1;groups=g1&&g2`, the text of the TXT record of Kuadrant. Returns the groups, which
 * may be none; undefined = the text is invalid, or of another version.
 */
export function scanActiveGroups(text: string): readonly string[] | undefined {
  const fields = new Map(
    text
      .replaceAll(QUOTES, '')
      .split(';')
      .map((field): [string, string] => {
        const at = field.indexOf('=')
        return at === -1
          ? [field.trim(), '']
          : [field.slice(0, at).trim(), field.slice(at + 1).trim()]
      }),
  )
  const groups = fields.get('groups')
  if (fields.get('version') !== VERSION || groups === undefined) return undefined
  const names = groups.split('&&').filter((name) => name !== '')
  return names.length <= GROUPS_MAX && names.every(isGroup) ? names : undefined
}
