//! Enums whose values have names, on command lines and in measurement lines.

/// Declares an enum with a name for each value, the same in `Display`, `FromStr` and JSON. The text
/// after the enum's name says in errors what the name is of.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $Name:ident: $what:literal {
            $($(#[$attribute:meta])* $Value:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $Name {
            $($(#[$attribute])* $Value,)+
        }

        impl $Name {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Value),+];

            /// The name on the command line and in measurement lines.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.into_iter().find(|value| value.name() == text).ok_or_else(|| {
                    let names = Self::ALL.map(Self::name).join(", ");
                    format!("'{text}' is no {}: choose of {names}", $what)
                })
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

pub(crate) use named;
