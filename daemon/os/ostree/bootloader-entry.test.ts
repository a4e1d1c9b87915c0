import { describe, expect, it } from 'vitest';
import { parseBootloaderEntry, splitKernelArguments } from './bootloader-entry.ts';

/** As ostree 2022.7 wrote it. */
const ENTRY = `title Stock OS 1 (ostree:0)
version 2
options root=LABEL=root rw dyndbg="file a.c +p" ostree=/ostree/boot.1/stock/7c07/0
linux /ostree/stock-7c07/vmlinuz-6.12.57-shale
initrd /ostree/stock-7c07/initramfs-6.12.57-shale.img
`;

describe('bootloader entries', () => {
  it('name a deployment and its kernel arguments', () => {
    expect(parseBootloaderEntry('ostree-2-stock.conf', ENTRY)).toEqual({
      version: 2,
      title: 'Stock OS 1 (ostree:0)',
      kernelArguments: ['root=LABEL=root', 'rw', 'dyndbg="file a.c +p"'],
      deploymentLink: '/ostree/boot.1/stock/7c07/0',
    });
  });

  it('of other systems are left out', () => {
    expect(parseBootloaderEntry('windows.conf', 'title Windows\nefi /EFI/x.efi\n')).toBeUndefined();
  });

  it('without a version are refused', () => {
    expect(() => parseBootloaderEntry('x.conf', ENTRY.replace('version 2\n', ''))).toThrow('x.conf: version');
  });

  it.each([
    ['', []],
    ['  a  b=1\tc ', ['a', 'b=1', 'c']],
    ['a="x y" "b c"', ['a="x y"', '"b c"']],
    ['a="never closed b', ['a="never closed b']],
  ])('%j splits into %j', (text, expected) => {
    expect(splitKernelArguments(text)).toEqual(expected);
  });
});
