import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, startLabNode } from './lab-node.ts';
import { text } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';

const LOCK = '/run/ostree/staged-deployment-locked';
/** As for soft reboots: this machine's ostree installs it. */
const STOCK = [text('/usr/lib/ostree/prepare-root.conf', '[composefs]\nenabled = maybe\n')];

const title = 'what a newer ostree holds back from the next boot';

/** daemon/os/image-tool/ relies on it, under a bootc that can't be told to lock. Each test begins where the one before ended. */
describe.skipIf(noComingDebian !== undefined)(
  noComingDebian === undefined ? title : `${title} (skipped: ${noComingDebian})`,
  { timeout: patience(60_000) },
  () => {
    let lab: LabNode;
    let commit: string;

    beforeAll(async () => {
      lab = await startLabNode(STOCK, { system: COMING_DEBIAN, startsDaemon: async () => false });
      commit = await lab.sh("ostree admin status | sed -n 's/^\\* [^ ]* \\([0-9a-f]*\\)\\..*/\\1/p'");
    }, patience(FIRST_TIME_MS));
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

    /** Stages the booted commit with another kernel argument, so that it is another deployment. */
    const stage = (argument: string, ...options: readonly string[]) =>
      lab.sh(['ostree admin deploy --stage', ...options, `--karg-append=${argument}`, commit].join(' '));
    /** @returns what ostree makes of what is staged when the machine shuts down. */
    const atShutdown = async () => {
      await lab.sh('ostree admin finalize-staged');
      const [first = ''] = (await lab.sh('ostree admin status')).split('\n');
      return /\((.*)\)$/.exec(first)?.[1];
    };

    it('is what is staged under a lock that was there before, where nothing was staged', async () => {
      await lab.sh(`mkdir -p ${LOCK.replace(/\/[^/]*$/, '')} && touch ${LOCK}`);
      await stage('one=1');
      expect(await atShutdown()).toBe('staged');
      expect(await lab.sh(`ls ${LOCK}`)).toBe(LOCK);
    });

    it('is not what replaces it: the lock goes', async () => {
      await stage('two=2');
      await expect(lab.sh(`ls ${LOCK}`)).rejects.toThrow(LOCK);
    });

    it('is what replaces it with --lock-finalization', async () => {
      await stage('three=3', '--lock-finalization');
      expect(await atShutdown()).toBe('finalization locked');
    });

    it('is the next boot when it is staged again', async () => {
      await stage('four=4');
      expect(await atShutdown()).toBe('pending');
    });
  },
);
