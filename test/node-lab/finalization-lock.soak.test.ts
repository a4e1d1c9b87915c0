/** ostree's own finalization lock over real shutdowns: which deployment boots next. */
import { beforeAll, expect, it } from 'vitest';
import { describeLabNode } from './describe-lab-node.ts';
import { text } from './lab-updates.ts';
import { COMING_DEBIAN, noComingDebian } from './prepared-root.ts';

const LOCK = '/run/ostree/staged-deployment-locked';
/** As for soft reboots: this machine's ostree installs it. */
const STOCK = [text('/usr/lib/ostree/prepare-root.conf', '[composefs]\nenabled = maybe\n')];

const NODE = {
  stock: STOCK,
  missing: noComingDebian,
  limitMs: 60_000,
  options: () => ({ system: COMING_DEBIAN, startsDaemon: async () => false }),
};

/**
 * daemon/os/image-tool/ relies on it, under a bootc that can't be told to lock. Each test begins where the one before
 * ended.
 */
describeLabNode('what a newer ostree locks', NODE, (machine) => {
  let commit: string;

  beforeAll(async () => {
    commit = await machine.sh("ostree admin status | sed -n 's/^\\* [^ ]* \\([0-9a-f]*\\)\\..*/\\1/p'");
  });

  /** Stages the booted commit with another kernel argument, so that it is another deployment. */
  const stage = (argument: string, ...options: readonly string[]) =>
    machine.sh(['ostree admin deploy --stage', ...options, `--karg-append=${argument}`, commit].join(' '));
  /** @returns what ostree makes of what is staged when the machine shuts down. */
  const atShutdown = async () => {
    await machine.sh('ostree admin finalize-staged');
    const [first = ''] = (await machine.sh('ostree admin status')).split('\n');
    return /\((.*)\)$/.exec(first)?.[1];
  };

  it('is what is staged under a lock that was there before, where nothing was staged', async () => {
    await machine.sh(`mkdir -p ${LOCK.replace(/\/[^/]*$/, '')} && touch ${LOCK}`);
    await stage('one=1');
    expect(await atShutdown()).toBe('staged');
    expect(await machine.sh(`ls ${LOCK}`)).toBe(LOCK);
  });

  it('is not what replaces it: the lock goes', async () => {
    await stage('two=2');
    await expect(machine.sh(`ls ${LOCK}`)).rejects.toThrow(LOCK);
  });

  it('is what replaces it with --lock-finalization', async () => {
    await stage('three=3', '--lock-finalization');
    expect(await atShutdown()).toBe('finalization locked');
  });

  it('is the next boot when it is staged again', async () => {
    await stage('four=4');
    expect(await atShutdown()).toBe('pending');
  });
});
