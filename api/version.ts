/** Shale's version, as images, rendered configs and logs name it; the same as package.json's. */
export const SHALE_VERSION = '0.1.0';
