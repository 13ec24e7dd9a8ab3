"""The countries of AL-QASIDA's dialects, in the order of the NADI classifier's labels, and their regions."""

# The classes of the NADI model in their fixed order, by code and by name. The paper's program never reads the config.
COUNTRIES = tuple("dza bhr egy irq jor kwt lbn lby mar omn pse qat sau sdn syr tun are yem".split())
COUNTRY_NAMES = tuple(
    "Algeria Bahrain Egypt Iraq Jordan Kuwait Lebanon Libya Morocco Oman Palestine Qatar Saudi_Arabia Sudan Syria "
    "Tunisia UAE Yemen".split()
)
NAMES = {code: name.replace("_", " ") for code, name in zip(COUNTRIES, COUNTRY_NAMES, strict=True)}  # for people
# Regions of the released files (and of ADI-under-scrutiny); the paper does not list them.
REGIONS: dict[str, tuple[str, ...]] = {
    "Gulf": ("bhr", "irq", "kwt", "omn", "qat", "sau", "are"),
    "Levant": ("jor", "lbn", "pse", "syr"),
    "Maghreb": ("dza", "lby", "mar", "tun"),
    "Nile": ("egy", "sdn"),
    "Aden": ("yem",),
}
