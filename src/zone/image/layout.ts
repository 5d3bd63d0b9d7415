import { mixHash } from '../../dns/name/hash.ts'

/*
 * The arena of a zone image: one growable SharedArrayBuffer, read as 32-bit words and as octets.
 * Places are word offsets, 1..2^30-1 (4 GB); 0 means "none". Blocks are appended. A published block
 * never changes, except the words marked *. Only the writer uses the words marked +.
 *
 *   header ──▶ zone table ──▶ zone ──▶ apex node
 *      │                        ├────▶ newest node ──▶ older node ──▶ … (all nodes of the zone)
 *      │                        └────▶ newest chain ─▶ older chain ─▶ …
 *      │                                     └──▶ chain blocks ──▶ nodes, in canonical order
 *      └─────▶ node index ───▶ node ──▶ newest body ──▶ older body ──▶ …
 *                                           ├──▶ RRset
 *                                           └──▶ RRset
 *
 *   header       zone table, node index      zone                node              body
 *   0 magic      0  slots - 1                0  id               0* newest body    0  version
 *   1*version    1* slot 0: hash             1  born             1+ children       1  previous body
 *   2*length     2*         offset           2* died             2  id | octets    2  count | flags
 *   3*index      3* slot 1: hash             3* delegates        3  next in zone   3… RRsets, by type
 *   4*zones      …                           4  apex node        4… relative name
 *   5*labels                                 5  labels | octets
 *   6+tail                                   6* newest node      RRset
 *                                            7  hash             0  type | count
 *   chain                   chain block      8  previous zone    1  TTL
 *   0  version              0  count         9* newest chain     2  words of this block
 *   1  previous chain       1… nodes         10… apex            3  count of steering words
 *   2  type                                                      4… offset table, steering, packed rdata
 *   3  count of blocks
 *   4  words of parameters
 *   5… parameters, first node of each block, blocks
 *
 *   packed rdata: length (16 bits, big-endian), octets; length, octets; … padded with zeros to a word
 *
 * Versions: a publish is one atomic store of header word 1. The bodies of a node are linked, newest
 * first. A reader of version v uses the first body with version <= v; without one, the name does
 * not exist in v. A zone exists from version `born` to before `died`. A reader loads `version` once
 * per query, so it sees each commit, of any size, completely or not at all.
 *
 * The chain of a signed zone has the owners of its NSEC or NSEC3 records in canonical order (RFC 4034
 * section 6.1), in blocks of CHAIN_BLOCK_MIN..CHAIN_BLOCK_MAX nodes; a chain with one block may have
 * fewer. A new version of the chain shares with the one before all blocks in which no name joined or
 * left. A search compares the name with the first nodes of the blocks, and then with those of one block.
 */

/** Header word 0: "SXZ" and the number of the format. Detects a foreign byte order too. */
export const MAGIC = 0x53585a02
export const HEADER_MAGIC = 0
/** Newest published version: 0 (none yet)..2^32-2. Only the store of this word publishes. */
export const HEADER_VERSION = 1
/** Words in the arena now; a reader with shorter views replaces them. */
export const HEADER_LENGTH = 2
/** Offset of the current node index; older ones remain readable. */
export const HEADER_INDEX = 3
/** Offset of the current zone table. */
export const HEADER_ZONES = 4
/** Labels of the deepest apex that was ever added. Lookups do not search for zones at longer names. */
export const HEADER_ZONE_LABELS = 5
/** First free word, as of the last publish. */
export const HEADER_TAIL = 6
export const HEADER_WORDS = 8

/** Open addressing, linear probing, at most half full; an offset of 0 is an empty slot. */
export const TABLE_MASK = 0
export const TABLE_SLOTS = 1
export const SLOT_WORDS = 2

/** 1..ZONE_MAX. */
export const ZONE_ID = 0
/** First version that has the zone: 1..2^32-1. */
export const ZONE_BORN = 1
/** First version without the zone; 0 = the zone exists. */
export const ZONE_DIED = 2
/**
 * 1 if any name is, or was since the last compaction, a zone cut or the owner of a DNAME. With 0, a
 * lookup probes for the whole name at once. With 1, it walks down from the apex, so a 1 that is no
 * longer true costs time only.
 */
export const ZONE_DELEGATES = 3
export const ZONE_APEX_NODE = 4
/** Labels of the apex in the high half, 0..127; octets of its wire form in the low half, 1..255. */
export const ZONE_APEX_SIZE = 5
/** Node that was added last; used only to iterate over all nodes. */
export const ZONE_NEWEST_NODE = 6
/** Unfinished hash of the apex (dns/name/hash). */
export const ZONE_HASH = 7
/** The previous zone with this apex; 0 = none. */
export const ZONE_PREVIOUS = 8
/** Newest chain of a signed zone; 0 = none. Chains have versions like bodies. */
export const ZONE_CHAIN = 9
/** The apex in lower-case wire form, padded with zeros. */
export const ZONE_APEX = 10
/** Maximum of zones in one image: ids are 16 bits wide. */
export const ZONE_MAX = 65535

export const CHAIN_VERSION = 0
export const CHAIN_PREVIOUS = 1
/** Type of the records that prove absence: NSEC or NSEC3. */
export const CHAIN_TYPE = 2
/** Blocks of the chain; 0 = the zone has no chain from this version on. */
export const CHAIN_BLOCKS = 3
/** Number of words of the parameters; 0 in an NSEC chain. */
export const CHAIN_PARAMETER_WORDS = 4
/**
 * NSEC3PARAM rdata with the hash parameters of the chain, padded with zeros. The first nodes of the
 * blocks follow, then the blocks.
 */
export const CHAIN_REST = 5

export const CHAIN_BLOCK_COUNT = 0
export const CHAIN_BLOCK_NODES = 1
/** A change of a name writes its block and two words for each block: with 100 000 names, least at about this size. */
export const CHAIN_BLOCK_MAX = 512
export const CHAIN_BLOCK_MIN = 128

export const NODE_BODY = 0
/** Number of children in the unpublished version. The writer uses it to detect when flags change. */
export const NODE_CHILDREN = 1
/** Zone id in the high half; octets of the relative name in the low half: 0 (apex)..254. */
export const NODE_KEY = 2
export const NODE_NEXT = 3
/** Labels above the apex, lower case, no root: `www.example.org.` in example.org is 3www. */
export const NODE_NAME = 4

export const BODY_VERSION = 0
export const BODY_PREVIOUS = 1
/** Count of RRsets in the high 24 bits, 0..RRSETS_MAX; flags below. All zero: no such name. */
export const BODY_STATE = 2
export const BODY_RRSETS = 3
export const BODY_COUNT_SHIFT = 8
/** Maximum of RRsets of one owner. */
export const RRSETS_MAX = 255

/** The zone's apex: exists even when empty. */
export const FLAG_APEX = 1
/** Names below this one exist; without RRsets it is an empty non-terminal (RFC 8499). */
export const FLAG_CHILDREN = 2
/** The child `*` exists: this node can be the closest encloser of a wildcard (RFC 4592). */
export const FLAG_WILDCARD = 4
/** NS below the apex: a zone cut, occluding everything below. */
export const FLAG_CUT = 8
/** Owns a DNAME, occluding everything below. */
export const FLAG_DNAME = 16
/** Owns RRSIG records. */
export const FLAG_SIGNED = 32
/** Owns NSEC3 records, their signatures and nothing else: queries do not see the name (RFC 5155 section 7.2.8). */
export const FLAG_HASHED = 64
/** Declared by the caller: exists even without RRsets and children. */
export const FLAG_DECLARED = 128
/** Flags that do not depend on the RRsets of the name. */
export const LASTING_FLAGS = FLAG_APEX | FLAG_CHILDREN | FLAG_WILDCARD | FLAG_DECLARED

/** Type in the high half; count of rdata in the low half, 1..65535. */
export const RRSET_HEAD = 0
export const RRSET_TTL = 1
export const RRSET_WORDS = 2
export const RRSET_STEERING_COUNT = 3
/**
 * Offset table of sets larger than TABLE_FREE_RDATA_MAX: for rdata k, octets from the start of the
 * packed rdata. The encoded steering, or in an RRSIG RRset its signature directory, and the packed rdata follow.
 */
export const RRSET_REST = 4
/** Largest set without an offset table: readers find rdata k by stepping over the k before it. */
export const TABLE_FREE_RDATA_MAX = 8

/** Distributes zone ids over the hashes of names. */
const ZONE_FACTOR = 0x9e3779b1

/** Returns the finished hash of a node's key: the sort key of the node index. */
export function nodeHash(suffixHash: number, zoneId: number): number {
  return mixHash(suffixHash ^ Math.imul(zoneId, ZONE_FACTOR))
}
