//! Tables of what is written short and said long: units, money, abbreviations, symbols, months.

/// Unit symbol → singular and plural.
pub(super) fn unit(symbol: &str) -> Option<(&'static str, &'static str)> {
    Some(match symbol {
        "km" => ("kilometer", "kilometers"),
        "m" => ("meter", "meters"),
        "cm" => ("centimeter", "centimeters"),
        "mm" => ("millimeter", "millimeters"),
        "µm" | "μm" | "um" => ("micrometer", "micrometers"),
        "nm" => ("nanometer", "nanometers"),
        "mi" => ("mile", "miles"),
        "ft" => ("foot", "feet"),
        "yd" => ("yard", "yards"),
        "kg" => ("kilogram", "kilograms"),
        "g" => ("gram", "grams"),
        "mg" => ("milligram", "milligrams"),
        "lb" | "lbs" => ("pound", "pounds"),
        "oz" => ("ounce", "ounces"),
        "l" | "L" => ("liter", "liters"),
        "ml" | "mL" => ("milliliter", "milliliters"),
        "h" | "hr" | "hrs" => ("hour", "hours"),
        "min" | "mins" => ("minute", "minutes"),
        "s" | "sec" | "secs" => ("second", "seconds"),
        "ms" => ("millisecond", "milliseconds"),
        "µs" | "μs" | "us" => ("microsecond", "microseconds"),
        "ns" => ("nanosecond", "nanoseconds"),
        "km/h" | "kmh" | "kph" => ("kilometer per hour", "kilometers per hour"),
        "m/s" => ("meter per second", "meters per second"),
        "mph" => ("mile per hour", "miles per hour"),
        "Hz" => ("hertz", "hertz"),
        "kHz" => ("kilohertz", "kilohertz"),
        "MHz" => ("megahertz", "megahertz"),
        "GHz" => ("gigahertz", "gigahertz"),
        "W" => ("watt", "watts"),
        "kW" => ("kilowatt", "kilowatts"),
        "MW" => ("megawatt", "megawatts"),
        "kWh" => ("kilowatt hour", "kilowatt hours"),
        "V" => ("volt", "volts"),
        "mAh" => ("milliamp hour", "milliamp hours"),
        "B" => ("byte", "bytes"),
        "kB" | "KB" => ("kilobyte", "kilobytes"),
        "MB" => ("megabyte", "megabytes"),
        "GB" => ("gigabyte", "gigabytes"),
        "TB" => ("terabyte", "terabytes"),
        "KiB" => ("kibibyte", "kibibytes"),
        "MiB" => ("mebibyte", "mebibytes"),
        "GiB" => ("gibibyte", "gibibytes"),
        "kbps" => ("kilobit per second", "kilobits per second"),
        "Mbps" => ("megabit per second", "megabits per second"),
        "Gbps" => ("gigabit per second", "gigabits per second"),
        "dB" => ("decibel", "decibels"),
        "°C" | "℃" => ("degree Celsius", "degrees Celsius"),
        "°F" | "℉" => ("degree Fahrenheit", "degrees Fahrenheit"),
        "°" => ("degree", "degrees"),
        "K" => ("kelvin", "kelvin"),
        "kcal" => ("kilocalorie", "kilocalories"),
        "m²" | "m2" => ("square meter", "square meters"),
        "km²" | "km2" => ("square kilometer", "square kilometers"),
        "m³" | "m3" => ("cubic meter", "cubic meters"),
        "%" => ("percent", "percent"),
        "x" | "×" => ("time", "times"),
        "px" => ("pixel", "pixels"),
        "fps" => ("frame per second", "frames per second"),
        _ => return None,
    })
}

/// Whether a unit symbol is too much like a word to be read as a unit when a space parts it from its number.
pub(super) fn is_wordlike(symbol: &str) -> bool {
    matches!(symbol, "us" | "x" | "K" | "B" | "W" | "V" | "s" | "h" | "L")
}

/// Currency symbol → name of one, of many, of the hundredth part.
pub(super) fn money(symbol: char) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    Some(match symbol {
        '$' => ("dollar", "dollars", "cent", "cents"),
        '€' => ("euro", "euros", "cent", "cents"),
        '£' => ("pound", "pounds", "penny", "pence"),
        '¥' => ("yen", "yen", "sen", "sen"),
        '₹' => ("rupee", "rupees", "paisa", "paise"),
        _ => return None,
    })
}

/// Multiples behind a number: `$5M`, `3 bn`.
pub(super) fn multiple(text: &str) -> Option<&'static str> {
    Some(match text {
        "k" | "K" | "thousand" => "thousand",
        "M" | "m" | "mn" | "million" => "million",
        "B" | "b" | "bn" | "billion" => "billion",
        "T" | "tn" | "trillion" => "trillion",
        _ => return None,
    })
}

/// Abbreviation with its stop → words. `St.` is not here: it depends on what follows.
pub(super) fn abbreviation(lower: &str) -> Option<&'static str> {
    Some(match lower {
        "dr." => "Doctor",
        "mr." => "Mister",
        "mrs." => "Missus",
        "ms." => "Miz",
        "prof." => "Professor",
        "rev." => "Reverend",
        "gen." => "General",
        "capt." => "Captain",
        "lt." => "Lieutenant",
        "sgt." => "Sergeant",
        "gov." => "Governor",
        "sen." => "Senator",
        "jr." => "Junior",
        "sr." => "Senior",
        "mt." => "Mount",
        "e.g." | "e.g" => "for example",
        "i.e." | "i.e" => "that is",
        "etc." | "etc" => "et cetera",
        "vs." | "vs" => "versus",
        "approx." => "approximately",
        "incl." => "including",
        "dept." => "department",
        "est." => "established",
        "inc." => "incorporated",
        "ltd." => "limited",
        "corp." => "corporation",
        "ave." => "avenue",
        "blvd." => "boulevard",
        "w/" => "with",
        "w/o" => "without",
        "a.m." | "a.m" => "A M",
        "p.m." | "p.m" => "P M",
        "ph.d." | "ph.d" => "P H D",
        _ => return None,
    })
}

/// Abbreviations that are such only before a number: `No. 5`, `p. 12`.
pub(super) fn before_number(lower: &str) -> Option<&'static str> {
    Some(match lower {
        "no." | "nr." | "#" | "№" => "number",
        "fig." => "figure",
        "vol." => "volume",
        "p." => "page",
        "pp." => "pages",
        "ch." => "chapter",
        "sec." => "section",
        "ca." | "~" | "≈" => "about",
        _ => return None,
    })
}

/// A symbol that stands alone between words.
pub(super) fn symbol(text: &str) -> Option<&'static str> {
    Some(match text {
        "&" => "and",
        "+" => "plus",
        "=" | "==" => "equals",
        "@" => "at",
        "%" => "percent",
        "/" => "slash",
        "<" => "less than",
        ">" => "greater than",
        "≤" | "<=" => "at most",
        "≥" | ">=" => "at least",
        "≠" | "!=" => "is not",
        "×" => "times",
        "÷" => "divided by",
        "±" => "plus or minus",
        "→" | "->" | "=>" | "⇒" => "to",
        "°" => "degrees",
        "©" => "copyright",
        "™" | "®" => "",
        "§" => "section",
        _ => return None,
    })
}

/// Number of a month by its name or abbreviation (with or without a stop).
pub(super) fn month(word: &str) -> Option<&'static str> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let word = word.trim_end_matches('.');
    if !word.starts_with(|c: char| c.is_ascii_uppercase()) {
        return None;
    }
    MONTHS
        .into_iter()
        .find(|m| *m == word || (word.len() >= 3 && m.get(..3) == Some(word)) || (word == "Sept" && *m == "September"))
}

/// Name of a month by its number.
pub(super) fn month_name(n: u64) -> Option<&'static str> {
    const SHORT: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    n.checked_sub(1).and_then(|i| SHORT.get(i as usize)).and_then(|s| month(s))
}
