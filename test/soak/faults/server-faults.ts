import { BUILDER_DEPLOYMENT } from '../../../api/names.ts';
import type { Fate, FrontRequest } from '../world/front.ts';
import { Random } from '../world/random.ts';
import type { FaultKind } from './fault.ts';

const FORWARD: Fate = { kind: 'forward' };
/** Service accounts of Shale's processes. */
const ACCOUNTS = ['shale-operator', BUILDER_DEPLOYMENT, 'shale-daemon'];
const WRITES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** A trouble of a server, by the words of people. */
type Trouble = readonly [name: string, fate: Fate];

const API_TROUBLES: readonly Trouble[] = [
  ['cut', { kind: 'cut' }],
  ['unanswered', { kind: 'unanswered' }],
  ['slow', { kind: 'slow', ms: 1_500 }],
  ['500', { kind: 'status', code: 500 }],
  ['503', { kind: 'status', code: 503 }],
  ['429', { kind: 'status', code: 429 }],
  ['409', { kind: 'status', code: 409 }],
];

/** The API server fails some or all of the requests of one process, or of all. */
const apiTrouble: FaultKind = {
  weight: 5,
  draw(random, { longestMs }) {
    const [name, fate] = random.pick(API_TROUBLES);
    const account = random.pick([...ACCOUNTS, 'all']);
    const share = random.pick([1, 1, 0.5, 0.2]);
    const lastsMs = random.between(300, longestMs);
    const chance = new Random(random.between(0, 2 ** 30));
    // A conflict is the answer to a write, and an answer is lost for good only after one.
    const writesOnly = name === '409' || name === 'unanswered' || random.next() < 0.3;
    return {
      kind: `API ${name}`,
      subject: account,
      details: `${share * 100} % of ${writesOnly ? 'writes' : 'requests'} for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        world.apiFront.decide(({ method, token }) => {
          if (writesOnly && !WRITES.has(method)) return FORWARD;
          if (account !== 'all' && world.accountOf(token) !== account) return FORWARD;
          return chance.next() < share ? fate : FORWARD;
        });
        // A server that is away has no connections left.
        if (name === 'cut' && share === 1) world.apiFront.endWatches();
        return undefined;
      },
      end: async ({ world }) => world.apiFront.decide(() => FORWARD),
    };
  },
};

/** Every watch ends; with 410, what it would go on from is gone. */
const watchesEnd: FaultKind = {
  weight: 3,
  draw(random) {
    const gone = random.next() < 0.5;
    const lastsMs = random.between(200, 2_000);
    const refuse = ({ url }: FrontRequest): Fate =>
      /[?&]watch=/.test(url) ? { kind: 'status', code: 410 } : FORWARD;
    return {
      kind: gone ? 'watches 410' : 'watches end',
      subject: 'all',
      ...(gone ? { lastsMs } : {}),
      begin: async ({ world }) => {
        if (gone) world.apiFront.decide(refuse);
        return `${world.apiFront.endWatches()} watches`;
      },
      end: async ({ world }) => {
        if (gone) world.apiFront.decide(() => FORWARD);
      },
    };
  },
};

const REGISTRY_TROUBLES: readonly Trouble[] = [
  ['cut', { kind: 'cut' }],
  ['unanswered', { kind: 'unanswered' }],
  ['slow', { kind: 'slow', ms: 1_500 }],
  ['500', { kind: 'status', code: 500 }],
  ['503', { kind: 'status', code: 503 }],
  ['429', { kind: 'status', code: 429 }],
  ['other byte', { kind: 'other byte' }],
];

/** The registry fails some or all requests. */
const registryTrouble: FaultKind = {
  weight: 4,
  draw(random, { longestMs }) {
    const [name, fate] = random.pick(REGISTRY_TROUBLES);
    const share = random.pick([1, 0.5, 0.2]);
    const lastsMs = random.between(300, longestMs);
    const chance = new Random(random.between(0, 2 ** 30));
    return {
      kind: `registry ${name}`,
      subject: 'all',
      details: `${share * 100} % of requests for ${lastsMs} ms`,
      lastsMs,
      begin: async ({ world }) => {
        world.registryFront.decide(() => (chance.next() < share ? fate : FORWARD));
        return undefined;
      },
      end: async ({ world }) => world.registryFront.decide(() => FORWARD),
    };
  },
};

export const serverFaults: readonly FaultKind[] = [apiTrouble, watchesEnd, registryTrouble];
