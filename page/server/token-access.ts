import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { isAllowed, type UserInfo } from '../../cluster/access-reviews.ts';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { Access, AccessVerdict, Question } from './access.ts';
import { CHANGE_KINDS } from './change-reader.ts';
import { shownKinds } from './page-caches.ts';

interface TokenReview extends KubernetesObject {
  readonly spec: { readonly token: string };
  readonly status?: { readonly authenticated?: boolean; readonly user?: UserInfo };
}
const TokenReviews: Kind<TokenReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};
/** ms to cache granted access; a revoked permission takes effect within this time. */
const ANSWER_HOLDS_MS = 60_000;
/** ms to cache denied access; a new permission takes effect within this time. */
const REFUSAL_HOLDS_MS = 5_000;
/** The size of the cache; the oldest entries are removed. */
const MOST_ANSWERS = 1_000;
/** The maximum number of concurrent reviews, so that requests with invalid tokens can't overload the API server. */
const MOST_REVIEWS = 8;
const QUESTION_DEADLINE_MS = 10_000;

const CHANGES = CHANGE_KINDS.map((kind) => ({ kind }));

interface TokenAccessParts {
  readonly client: ApiClient;
  readonly leaseNamespace: string;
  readonly log: Logger;
  /** ms since the epoch. */
  readonly now?: () => number;
}

/**
 * Access by tokens of the cluster: the API server authenticates a token (TokenReview) and authorizes its user to list
 * every kind that the page shows (SubjectAccessReview), and MachineConfigs for the lines of a change. The page shows
 * nothing that kubectl would not show the same user.
 */
export function tokenAccess({ client, leaseNamespace, log, now = Date.now }: TokenAccessParts): Access {
  const answers = new Map<string, { readonly verdict: AccessVerdict; readonly until: number }>();
  const pending = new Map<string, Promise<AccessVerdict>>();

  async function review(token: string, question: Question): Promise<AccessVerdict> {
    const signal = AbortSignal.timeout(QUESTION_DEADLINE_MS);
    try {
      const user = await userOf(client, token, signal);
      if (user === undefined)
        return { allowed: false, status: 401, why: 'the cluster does not accept this token' };
      return await mayRead(client, user, question === 'view' ? shownKinds(leaseNamespace) : CHANGES, signal);
    } catch (error) {
      log.warn({ err: error }, 'access to the page could not be checked with the API server');
      return { allowed: false, status: 503, why: 'the API server could not check your access' };
    }
  }

  function keep(key: string, verdict: AccessVerdict): void {
    if (!verdict.allowed && verdict.status === 503) return;
    answers.delete(key);
    answers.set(key, { verdict, until: now() + (verdict.allowed ? ANSWER_HOLDS_MS : REFUSAL_HOLDS_MS) });
    for (const oldest of answers.keys()) {
      if (answers.size <= MOST_ANSWERS) break;
      answers.delete(oldest);
    }
  }

  return {
    async authorize(token, question = 'view') {
      if (token === undefined) return { allowed: false, status: 401, why: 'a bearer token is required' };
      // The cache contains digests and no tokens.
      const key = `${question} ${createHash('sha256').update(token).digest('hex')}`;
      const known = answers.get(key);
      if (known !== undefined && known.until > now()) return known.verdict;
      const reused = pending.get(key);
      if (reused !== undefined) return reused;
      if (pending.size >= MOST_REVIEWS) {
        return { allowed: false, status: 503, why: 'too many requests are being authorized; try again' };
      }
      const reviewing = review(token, question).finally(() => pending.delete(key));
      pending.set(key, reviewing);
      const verdict = await reviewing;
      keep(key, verdict);
      return verdict;
    },
  };
}

async function userOf(client: ApiClient, token: string, signal: AbortSignal): Promise<UserInfo | undefined> {
  const question = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: {},
    spec: { token },
  };
  const review = await client.create(TokenReviews, question, { signal });
  return review.status?.authenticated === true ? review.status.user : undefined;
}

async function mayRead(
  client: ApiClient,
  user: UserInfo,
  kinds: ReturnType<typeof shownKinds>,
  signal: AbortSignal,
): Promise<AccessVerdict> {
  const answers = await Promise.all(
    kinds.map(async ({ kind, namespace }) => {
      const attributes = { verb: 'list', group: kind.group, resource: kind.plural, namespace };
      return { kind, allowed: await isAllowed(client, attributes, user, signal) };
    }),
  );
  const missing = answers.filter(({ allowed }) => !allowed).map(({ kind }) => kind.plural);
  return missing.length === 0
    ? { allowed: true, user: user.username }
    : {
        allowed: false,
        status: 403,
        why: `${user.username ?? 'this user'} is not allowed to list ${missing.join(', ')}`,
      };
}
