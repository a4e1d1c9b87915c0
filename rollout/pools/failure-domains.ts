import type { Node } from '../../api/kubernetes.ts';
import { maxUnavailable } from '../../api/max-unavailable.ts';
import { shortList } from '../../api/plural.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import { isNewNode } from './new-node.ts';

/** Nodes that fail together, by a label of theirs (spec.shale.failureDomains): few of each are unavailable at once. */
export interface FailureDomains {
  /**
   * @param node that would be unavailable, too.
   * @param taken names of the nodes that are unavailable for whatever reason.
   * @returns the node's domain; undefined where that has room.
   */
  readonly full: (node: string, taken: ReadonlySet<string>) => FullDomain | undefined;
}

/** A failure domain of which no further node may become unavailable. */
export interface FullDomain {
  /** As messages name it: `failure domain a`. */
  readonly name: string;
  /** Names of its unavailable nodes. */
  readonly unavailable: readonly string[];
  readonly most: number;
}

/**
 * Nodes without the label are a domain together. Pods run on no new node, so it is in none.
 *
 * @returns undefined in a pool that sets no limit for each domain.
 */
export function failureDomainsOf(
  limits: SettingValues['failureDomains'],
  nodes: readonly { readonly node: Node }[],
): FailureDomains | undefined {
  if (limits === undefined) return undefined;
  const { topologyKey, maxUnavailable: limit } = limits;
  const domainOf = new Map(
    nodes
      .filter(({ node }) => !isNewNode(node))
      .map(({ node: { metadata } }) => [metadata.name, metadata.labels?.[topologyKey] ?? '']),
  );
  const members = Map.groupBy(domainOf.keys(), (name) => domainOf.get(name) ?? '');
  return {
    full: (node, taken) => {
      const domain = domainOf.get(node) ?? '';
      const all = members.get(domain) ?? [];
      const most = maxUnavailable(limit, all.length);
      const unavailable = all.filter((other) => taken.has(other));
      const name =
        domain === ''
          ? `the failure domain of nodes without the label ${topologyKey}`
          : `failure domain ${domain}`;
      return unavailable.length < most ? undefined : { name, unavailable, most };
    },
  };
}

/** Nodes named in the clause; the rest is counted. */
const NAMED = 3;

/** @returns what a node of the domain waits for, as a clause. */
export function formatDomainWait({ name, unavailable, most }: FullDomain): string {
  return `waits: ${name} has ${unavailable.length} of ${most} unavailable: ${shortList(unavailable, NAMED)}`;
}
